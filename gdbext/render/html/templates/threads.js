// All threads of one rank; equal ones in one row. Links to threads and frames that the page does not show lead here.
{
  const select = $("rank");
  if (select) {
    const cells = new Map([...document.querySelectorAll(".cell[data-i]")].map((one) => [Number(one.dataset.i), one]));
    const order = data.ranks.map((_, index) => index).sort((a, b) => {
      const [one, other] = [data.ranks[a].rank, data.ranks[b].rank];
      return one === null || other === null ? (one === null) - (other === null) || a - b : one - other || a - b;
    });
    for (const index of order) {
      const option = make("option", data.ranks[index].label);
      option.value = index;
      select.append(option);
    }
    const body = $("thread-table").tBodies[0];
    let current = -1;
    const idsOf = (rank) => rank.ids.flatMap((one) => (typeof one === "string" ? [one] : Array.from({ length: one[1] }, (_, more) => String(one[0] + more))));

    // Into view inside of its own pane; the page stays where it is.
    const within = (pane, one) => {
      const [outer, inner] = [pane.getBoundingClientRect(), one.getBoundingClientRect()];
      if (inner.top < outer.top + 30 || inner.bottom > outer.bottom) pane.scrollTop += inner.top - outer.top - outer.height / 2;
    };

    const showStack = (row, mark) => {
      const stack = $("stack");
      stack.replaceChildren();
      body.querySelectorAll("tr").forEach((one) => one.setAttribute("aria-selected", String(one === row.line)));
      const about = [row.kind && `in ${row.kind}`, row.helper && `helper: ${row.helper}`, row.cpu && `CPU ${Math.round(row.cpu * 100)} %`].filter(Boolean);
      stack.append(make("h3", `${row.title}`), make("p", about.join(" · "), "note"));
      const list = make("ol", "", "frames");
      list.start = 0;
      stackOf(row.stack).forEach((number, at) => list.append(listing(at, frame(number), at === row.frame)));
      stack.append(list);
      if (row.stack < 0) stack.append(make("p", "This stack found no room on the page.", "note"));
      else if (!list.children.length) stack.append(make("p", "No frame of it was read.", "note"));
      if (row.note) stack.append(make("p", row.note, "note"));
      const shown = mark === undefined ? null : list.children[mark];
      stack.scrollTop = 0;
      if (shown) { shown.classList.add("shown"); within(stack, shown); }
    };

    const rowsOf = (rank) => {
      const ids = idsOf(rank), shapes = numbers(data.sequences[rank.shapes]), groups = new Map();
      shapes.forEach((number, at) => {
        const busy = rank.cpu[at] || 0;
        const key = at === rank.decides ? "decides" : busy ? `${number}:${at}` : number;
        if (!groups.has(key)) groups.set(key, { ...shape(number), at: [], ids: [], cpu: busy, decides: at === rank.decides });
        groups.get(key).at.push(at);
        groups.get(key).ids.push(ids[at]);
      });
      const rows = [...groups.values()];
      for (const row of rows) {
        const stack = stackOf(row.stack);
        row.title = row.ids.length === 1 ? `Thread ${row.ids[0]} ${row.name}` : `${row.ids.length} threads ${row.name}`;
        row.top = stack.length ? frame(stack[0]).name : "";
        row.text = [row.name, row.kind, row.helper, ...row.ids.slice(0, 50), ...stack.map((one) => frame(one).name)].join("\n").toLowerCase();
      }
      return rows.sort((a, b) => b.decides - a.decides || Boolean(a.helper) - Boolean(b.helper) || a.ids.length - b.ids.length);
    };

    const show = (index, thread, mark) => {
      const rank = data.ranks[index];
      if (!rank) return;
      current = index;
      select.value = index;
      cells.forEach((cell, other) => { if (other === index) cell.setAttribute("aria-current", "true"); else cell.removeAttribute("aria-current"); });
      const wanted = $("thread-search").value.trim().toLowerCase();
      const rows = rowsOf(rank).filter((row) => !wanted || row.text.includes(wanted));
      body.replaceChildren();
      for (const row of rows) {
        row.line = make("tr", "", row.helper ? "helper" : "");
        const name = make("td"), button = make("button", row.ids.length === 1 ? row.ids[0] : `${row.ids.length} ×`);
        button.type = "button";
        if (row.ids.length > 1) button.title = row.ids.slice(0, 50).join(", ");
        name.append(button);
        row.line.append(name, make("td", row.name), make("td", row.helper || row.kind), make("td", row.state), make("td"));
        row.line.lastChild.append(make("code", row.top));
        row.line.addEventListener("click", () => showStack(row));
        body.append(row.line);
      }
      const count = numbers(data.sequences[rank.shapes]).length;
      $("about").textContent = [`${count} thread${count === 1 ? "" : "s"}`, rank.about, rank.title].filter(Boolean).join(" · ");
      const first = rows.find((row) => row.at.includes(thread)) || rows[0];
      if (first) { showStack(first, mark); within($("thread-table").parentElement, first.line); } else $("stack").replaceChildren(make("p", "No thread of this name.", "note"));
    };
    const step = (by) => show(order[Math.min(Math.max(order.indexOf(current) + by, 0), order.length - 1)]);
    select.addEventListener("change", () => show(Number(select.value)));
    $("before").addEventListener("click", () => step(-1));
    $("after").addEventListener("click", () => step(1));
    $("thread-search").addEventListener("input", () => show(current));
    $("thread-bar").addEventListener("submit", (event) => event.preventDefault());

    const follow = () => {
      const found = /^#p(\d{1,9})(?:-t(\d{1,9})(?:-f(\d{1,9}))?)?$/.exec(location.hash);
      if (!found) return;
      const there = $(location.hash.slice(1));
      if (there && found[2] !== undefined) {
        for (let one = there; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
        there.scrollIntoView({ block: "center" });
      } else if (!there) {
        show(Number(found[1]), Number(found[2]), found[3] === undefined ? undefined : Number(found[3]));
        $("explorer").scrollIntoView({ block: "start" });
      }
    };
    addEventListener("hashchange", follow);
    document.addEventListener("click", (event) => {
      const cell = event.target.closest ? event.target.closest("a[data-i]") : null;
      const again = event.target.closest ? event.target.closest('a[href^="#p"]') : null;
      if (cell) {
        event.preventDefault();
        show(Number(cell.dataset.i), data.ranks[cell.dataset.i].decides);
        $("explorer").scrollIntoView({ block: "start" });
      } else if (again && again.getAttribute("href") === location.hash) follow();
    });
    const across = (one) => {
      const top = one.getBoundingClientRect().top, all = [...cells.values()];
      const at = all.indexOf(one), row = all.findIndex((other, number) => number > at && other.getBoundingClientRect().top > top);
      return row < 0 ? 1 : row - at;
    };
    roving([...cells.values()], (key, one) => ({ ArrowRight: 1, ArrowLeft: -1, ArrowDown: across(one), ArrowUp: -across(one), Home: -1e9, End: 1e9 })[key]);
    document.querySelectorAll(".cited").forEach((one) => { one.open = false; });  // the rows above show them as well
    if (data.ranks.length) show(data.first in data.ranks ? data.first : order[0]);
    follow();
  }
}
