const make = (name, text, kind) => {
  const one = document.createElement(name);
  if (text !== undefined && text !== "") one.textContent = text;
  if (kind) one.className = kind;
  return one;
};
const numbers = (text) => (text === "" ? [] : text.split(" ").map(Number));
const data = JSON.parse($("data").textContent);
const words = data.strings;
const FRAME = 4, SHAPE = 7, CALL = 5;
const frameRows = numbers(data.frames), shapeRows = numbers(data.shapes), treeRows = numbers(data.tree);
const frame = (number) => ({
  name: words[frameRows[number * FRAME]],
  place: words[frameRows[number * FRAME + 1]],
  path: words[frameRows[number * FRAME + 2]],
  python: frameRows[number * FRAME + 3] === 1,
});
const shape = (number) => {
  const row = shapeRows.slice(number * SHAPE, number * SHAPE + SHAPE);
  return { name: words[row[0]], state: words[row[1]], kind: words[row[2]], helper: words[row[3]], frame: row[4], stack: row[5], note: words[row[6]] };
};
const stackOf = (number) => (number < 0 ? [] : numbers(data.stacks[number]));

// "0-3,7" as a test of a number; null for what is no such list.
const parseSet = (text) => {
  const spans = [];
  for (const piece of text.split(",").map((one) => one.trim()).filter(Boolean)) {
    const found = /^(\d{1,9})(?:\s*-\s*(\d{1,9}))?$/.exec(piece);
    if (!found) return null;
    spans.push([Number(found[1]), Number(found[2] === undefined ? found[1] : found[2])]);
  }
  return spans;
};
const sets = data.sets.map((text) => parseSet(text) || []);
const overlap = (some, others) => some.some((a) => others.some((b) => a[0] <= b[1] && b[0] <= a[1]));

const listing = (number, calls, decides) => {
  const item = make("li", "", (calls.python ? "py" : "nat") + (decides ? " decides" : ""));
  item.append(make("b", calls.name), " ", make("i", calls.place));
  if (calls.path) item.title = calls.path;
  item.dataset.f = number;
  if (decides) item.append(" ", make("em", "decides"));
  return item;
};

// Arrow keys among things of which one is in the tab order.
const roving = (items, moves, chosen) => {
  items.forEach((one, number) => { one.tabIndex = number === 0 ? 0 : -1; });
  const to = (one) => { items.forEach((other) => { other.tabIndex = -1; }); one.tabIndex = 0; one.focus(); };
  items.forEach((one) => one.addEventListener("keydown", (event) => {
    const by = moves(event.key, one);
    if (by === undefined) return;
    const next = items[Math.min(Math.max(items.indexOf(one) + by, 0), items.length - 1)];
    event.preventDefault();
    to(next);
    if (chosen) chosen(next);
  }));
};
addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((one) => { one.open = true; one.dataset.print = "1"; }));
addEventListener("afterprint", () => document.querySelectorAll("details[data-print]").forEach((one) => { one.open = false; delete one.dataset.print; }));
