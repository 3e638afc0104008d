// The merged tree: search, filters, arrow keys. The template has drawn it already.
const stacks = { spans: null, hits: new Set(), redraw: () => {} };
{
  const tree = $("tree");
  if (tree) {
    const branches = [...tree.querySelectorAll(".branch")];
    const calls = [...tree.querySelectorAll("li[id]")];
    const texts = calls.map((one) => (one.textContent + "\n" + one.title).toLowerCase());
    const fold = $("fold"), search = $("search"), only = $("only-ranks"), found = $("found");
    let hits = [], at = -1;

    const put = (one, open) => { one.firstElementChild.open = open; one.setAttribute("aria-expanded", String(open)); };

    tree.setAttribute("role", "tree");
    tree.querySelectorAll(".branch > details > ul").forEach((one) => one.setAttribute("role", "group"));
    for (const one of branches) {
      const details = one.firstElementChild, summary = details.firstElementChild;
      one.setAttribute("role", "treeitem");
      details.setAttribute("role", "presentation");
      one.setAttribute("aria-label", [...summary.children].map((piece) => piece.textContent).join(", "));
      one.setAttribute("aria-selected", "false");
      summary.tabIndex = -1;
      put(one, details.open);
      details.addEventListener("toggle", () => put(one, details.open));
      summary.addEventListener("click", () => { branches.forEach((other) => { other.tabIndex = -1; }); one.tabIndex = 0; });
    }
    const visible = () => branches.filter((one) => !one.hidden && one.parentElement.closest("details:not([open])") === null);
    branches.forEach((one, number) => { one.tabIndex = number === 0 ? 0 : -1; });
    const focus = (one) => {
      if (!one) return;
      branches.forEach((other) => { other.tabIndex = -1; other.setAttribute("aria-selected", String(other === one)); });
      one.tabIndex = 0;
      one.focus();
    };
    tree.addEventListener("keydown", (event) => {
      const one = event.target;
      if (!one.classList.contains("branch")) return;
      const details = one.firstElementChild, seen = visible(), here = seen.indexOf(one);
      const above = one.parentElement.closest(".branch");
      const acts = {
        ArrowDown: () => focus(seen[here + 1]),
        ArrowUp: () => focus(seen[here - 1]),
        ArrowRight: () => (details.open ? focus(one.querySelector(".branch:not([hidden])")) : put(one, true)),
        ArrowLeft: () => (details.open ? put(one, false) : focus(above)),
        Home: () => focus(seen[0]),
        End: () => focus(seen[seen.length - 1]),
        Enter: () => put(one, !details.open),
        " ": () => put(one, !details.open),
      };
      if (event.key in acts) { event.preventDefault(); acts[event.key](); }
    });

    const reveal = (call) => {
      for (let one = call.parentElement; one && one !== tree; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
      calls.forEach((one) => one.classList.remove("at"));
      call.classList.add("hit", "at");
      call.scrollIntoView({ block: "center" });
    };
    stacks.reveal = (number) => { const one = $("n" + number); if (one) reveal(one); };

    const look = () => {
      const wanted = search.value.trim().toLowerCase();
      hits = [];
      stacks.hits = new Set();
      calls.forEach((one, number) => {
        const is = wanted !== "" && texts[number].includes(wanted);
        one.classList.toggle("hit", is);
        one.classList.remove("at");
        if (is) {
          stacks.hits.add(Number(one.id.slice(1)));
          if (!one.closest(".branch[hidden]")) hits.push(one);
        }
      });
      at = -1;
      found.textContent = wanted === "" ? "" : hits.length === 1 ? "1 call" : hits.length + " calls";
      for (const one of hits) for (let up = one.parentElement; up && up !== tree; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
      stacks.redraw();
    };
    const next = (by) => {
      if (!hits.length) return;
      at = (at + by + hits.length) % hits.length;
      found.textContent = `${at + 1} of ${hits.length} call${hits.length === 1 ? "" : "s"}`;
      reveal(hits[at]);
    };
    const filter = () => {
      const spans = parseSet(only.value);
      only.setAttribute("aria-invalid", String(spans === null));
      stacks.spans = spans && spans.length ? spans : null;
      branches.forEach((one) => { one.hidden = stacks.spans !== null && !overlap(sets[one.dataset.s], stacks.spans); });
      look();
      if (spans === null) found.textContent = "ranks are like 0-3,7";
      else if (stacks.spans && !visible().length) found.textContent = "no stack of these ranks";
    };
    search.addEventListener("input", look);
    search.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); next(event.shiftKey ? -1 : 1); } });
    only.addEventListener("input", filter);
    $("stack-bar").addEventListener("submit", (event) => event.preventDefault());
    $("stack-bar").addEventListener("change", (event) => {
      const { name, value } = event.target;
      if (name === "lang") {
        tree.classList.toggle("only-native", value === "native");
        tree.classList.toggle("only-python", value === "python");
        stacks.lang = value;
        stacks.redraw();
      } else if (name === "view") {
        tree.hidden = value !== "tree";
        fold.disabled = tree.hidden;
        $("icicle").hidden = value !== "icicle";
        stacks.redraw();
      }
    });
    fold.addEventListener("click", () => {
      const open = fold.textContent === "Expand all";
      branches.forEach((one) => put(one, open));
      fold.textContent = open ? "Collapse all" : "Expand all";
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) { event.preventDefault(); search.focus(); }
    });
  }
}
