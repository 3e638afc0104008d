"""The types of parameters, by demangled names."""

import pytest

from gdbext.parsers.parameter_types import Parameter, parameters_of, type_name

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
MAP = (
    f"std::unordered_map<{STRING}, ft::Tensor, std::hash<{STRING} >, std::equal_to<{STRING} >, "
    f"std::allocator<std::pair<{STRING} const, ft::Tensor> > >"
)


@pytest.mark.parametrize(
    "name, found",
    [
        (
            f"ft::f({MAP} const*, float, int, ft::Tensor const&)",
            (
                Parameter("std::unordered_map<std::string, ft::Tensor>", 1),
                Parameter("float"),
                Parameter("int"),
                Parameter("ft::Tensor", 0, True),
            ),
        ),
        (
            "void ft::A<float>::run<int>(ft::TensorMap*, std::vector<ft::Tensor, std::allocator<ft::Tensor> >*) const",
            (Parameter("ft::TensorMap", 1), Parameter("std::vector<ft::Tensor>", 1)),
        ),
        ("f(std::shared_ptr<rtp::Buffer const> const&)", (Parameter("std::shared_ptr<rtp::Buffer>", 0, True),)),
        ("f(ft::Tensor**, ft::Tensor*&)", (Parameter("ft::Tensor", 2), Parameter("ft::Tensor", 1, True))),
        ("(anonymous namespace)::f(int)", (Parameter("int"),)),
        ("f(int (*)(int, float))", (Parameter("int (*)(int, float)"),)),
        ("f()", ()),
        ("f(void)", ()),
        ("main", None),
        ("", None),
        ("ft::f(ft::Tensor*) [clone .isra.0]", None),
        ("ft::f(ft::Tensor*, ft::Ten", (Parameter("ft::Tensor", 1), Parameter("ft::Ten"))),
        ("f(" * 20000, None),
        ("f(" + "a<" * 5000 + ">" * 5000 + ")", None),
    ],
)
def test_parameters(name, found):
    assert parameters_of(name) == found


def test_what_takes_which_register():
    number, real, struct = parameters_of("f(unsigned long, double, ft::Something)")
    assert number.is_number and real.is_float and not (struct.is_number or struct.is_float)
    assert not Parameter("int", 1).is_number


@pytest.mark.parametrize("text", ["", "<", ">", "a<b", "const", "std::vector<>", "a<<<>>>", "std::vector<,>"])
def test_any_text_is_a_type(text):
    assert isinstance(type_name(text), str)
