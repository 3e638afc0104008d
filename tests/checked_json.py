"""Every document of ours that a test reads by `json.loads` is compared with the schema, also gdb's and those of child
processes: begun by conftest.py. Keys that the schema does not have are a fault here."""

import functools
import json

from gdbext.model.json_documents.json_schema import whole_schema

try:
    import jsonschema
except ImportError:  # it has no release for the oldest Pythons
    jsonschema = None

_LARGEST = 200_000  # characters: it is slow, and long documents repeat themselves
_loads = json.loads


def strict(schema):
    """The same, and no other keys."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return {**closed, **{key: strict(one) for key, one in schema.items()}}


@functools.lru_cache(maxsize=None)
def forms():
    """Each form of an answer: its keys, those that it must have, and what validates it."""
    whole = strict(whole_schema())
    found = []
    for reference in whole["anyOf"]:
        answer = whole["$defs"][reference["$ref"].rpartition("/")[2]]
        for form in answer.get("anyOf", [answer]):
            validator = jsonschema.Draft202012Validator({**form, "$defs": whole["$defs"]})
            found.append((set(form["properties"]), set(form["required"]), validator))
    return found


def check(document):
    """Fails where the document is no answer by the schema."""
    keys = set(document)
    fitting = [validator for known, needed, validator in forms() if needed <= keys <= known]
    assert fitting, f"no answer has these keys: {sorted(keys)}"
    errors = [next(iter(validator.iter_errors(document)), None) for validator in fitting]
    assert None in errors, f"{errors[0].json_path}: {errors[0].message[:500]}"


def _checked(text, **options):
    found = _loads(text, **options)
    ours = isinstance(found, dict) and found.get("schema") == 1 and "tool" in found and "snapshot" not in found
    if ours and len(text) <= _LARGEST:
        check(found)
    return found


def begin():
    if jsonschema is not None:
        json.loads = _checked
