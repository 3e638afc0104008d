// The merged tree as an icicle: callers above, width by threads. A click zooms in, and out again at the root.
{
  const place = $("icicle");
  if (place) {
    const SVG = "http://www.w3.org/2000/svg", ROW = 19, LEAST = 1.5, LETTER = 7;
    const count = treeRows.length / CALL, children = Array.from({ length: count }, () => []), roots = [];
    const row = (number) => ({ parent: treeRows[number * CALL], frame: treeRows[number * CALL + 1], set: treeRows[number * CALL + 2], threads: treeRows[number * CALL + 3], times: treeRows[number * CALL + 4] });
    for (let number = 0; number < count; number += 1) {
      const { parent } = row(number);
      (parent < 0 ? roots : children[parent]).push(number);
    }
    let top = -1;
    const draw = (name, attributes, inside) => {
      const one = document.createElementNS(SVG, name);
      for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
      if (inside) one.textContent = inside;
      return one;
    };
    const shown = (number) => stacks.spans === null || overlap(sets[row(number).set], stacks.spans);
    const skipped = (number) => stacks.lang === (frame(row(number).frame).python ? "native" : "python");
    // Calls of the other language take no row: their callees take their place.
    const below = (list) => list.filter(shown).flatMap((one) => (skipped(one) ? below(children[one]) : [one]));
    const culprits = new Set([...document.querySelectorAll(".branch.culprit li[id]")].map((one) => Number(one.id.slice(1))));
    stacks.redraw = () => {
      if (place.hidden) return;
      const width = Math.max(place.clientWidth, 320), svg = draw("svg", { width, role: "group", "aria-label": "Icicle: callers above, width by threads" });
      const start = top < 0 ? below(roots) : [top], all = start.reduce((sum, one) => sum + row(one).threads, 0) || 1;
      let deepest = 0;
      const todo = [];
      const lay = (list, left, depth, scale) => {
        for (const one of list) {
          const wide = row(one).threads * scale;
          if (wide >= LEAST) todo.push([one, left, depth, wide]);
          left += wide;
        }
      };
      lay(start, 0, 0, width / all);
      const boxes = [];
      while (todo.length) {
        const [number, left, depth, wide] = todo.pop();
        const { frame: of, set, threads, times } = row(number), call = frame(of);
        deepest = Math.max(deepest, depth);
        const words_ = `${call.name}${call.place ? "  " + call.place : ""}: ${threads} thread${threads === 1 ? "" : "s"}, ranks ${data.sets[set]}`;
        const group = draw("g", { tabindex: "-1", role: "button", "aria-label": words_ });
        group.dataset.n = number;
        group.setAttribute("class", [call.python ? "py" : "nat", culprits.has(number) ? "culprit" : "", stacks.hits.has(number) ? "hit" : "", stacks.hits.size && !stacks.hits.has(number) ? "faded" : ""].join(" "));
        group.append(draw("title", {}, words_), draw("rect", { x: left, y: depth * ROW, width: Math.max(wide, 1), height: ROW }));
        const fits = Math.floor((wide - 8) / LETTER), text = (times > 1 ? times + " × " : "") + call.name;
        if (fits > 3) group.append(draw("text", { x: left + 4, y: depth * ROW + 13 }, text.length > fits ? text.slice(0, fits - 1) + "…" : text));
        boxes.push(group);
        svg.append(group);
        lay(below(children[number]), left, depth + 1, wide / threads);
      }
      svg.setAttribute("height", (deepest + 1) * ROW);
      if (boxes.length) boxes[0].setAttribute("tabindex", "0");
      place.replaceChildren(svg);
    };
    const zoom = (number) => { top = top === number ? (row(number).parent) : number; stacks.redraw(); const first = place.querySelector("g"); if (first) first.focus(); };
    place.addEventListener("click", (event) => { const one = event.target.closest("g"); if (one) zoom(Number(one.dataset.n)); });
    place.addEventListener("keydown", (event) => {
      const one = event.target.closest("g");
      if (!one) return;
      const number = Number(one.dataset.n), around = row(number).parent < 0 ? roots : children[row(number).parent];
      const to = { ArrowDown: below(children[number])[0], ArrowUp: row(number).parent, ArrowRight: around[around.indexOf(number) + 1], ArrowLeft: around[around.indexOf(number) - 1] }[event.key];
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); zoom(number); }
      else if (to !== undefined) {
        const next = place.querySelector(`g[data-n="${Number(to)}"]`);
        event.preventDefault();
        if (next) { one.setAttribute("tabindex", "-1"); next.setAttribute("tabindex", "0"); next.focus(); }
      }
    });
    addEventListener("resize", () => stacks.redraw());
  }
}
