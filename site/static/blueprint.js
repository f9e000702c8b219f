// The graph of claims: a chapter, a search, or all that one statement rests on. The notebook of the blueprint puts this file into its page.
(() => {
  const root = document.querySelector(".blueprint");
  const [form, canvas, panel, svg] = ["form", ".canvas", ".path", ".canvas svg"].map((name) => root.querySelector(name));
  const [width, height] = ["width", "height"].map((name) => Number(svg.querySelector("#box rect").getAttribute(name)));
  const stepX = width + 8, stepY = height + 26, band = 30;
  const labels = [...svg.querySelectorAll("[data-chapter]")], arrows = svg.querySelector(".arrows");

  // Boxes stand in the order of their chapters and rows; each names those it needs by their place in that order.
  const nodes = [...svg.querySelectorAll("a")].map((box) => {
    const [page, id] = box.getAttribute("href").split("#");
    const [number, name, state] = box.getAttribute("aria-label").split(" · ");
    return { box, id, number, name, state, href: box.getAttribute("href"), chapter: page.replace(".html", ""), row: box.dataset.row, words: `${number} ${name} ${id}`.toLowerCase() };
  });
  for (const node of nodes) node.needs = node.box.dataset.needs.split(" ").filter(Boolean).map((i) => nodes[i]);
  const restsOn = (node) => (node.below ??= new Set(node.needs.flatMap((need) => [need, ...restsOn(need)])));

  let shown = nodes, selected = null, scale = 1, across = 0, size = [0, 0];

  const create = (name, attributes, ...children) => {
    const made = name === "path" ? document.createElementNS(svg.namespaceURI, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // Chapters from top to bottom, in each the rows that the notebook has found, as many boxes side by side as there is room for.
  const place = () => {
    let y = 0;
    for (const node of nodes) node.box.toggleAttribute("hidden", !shown.includes(node));
    for (const label of labels) {
      const here = shown.filter((node) => node.chapter === label.dataset.chapter);
      label.toggleAttribute("hidden", !here.length);
      if (!here.length) continue;
      label.setAttribute("transform", `translate(0,${y})`);
      y += band;
      for (const row of new Set(here.map((node) => node.row))) {
        const line = here.filter((node) => node.row === row);
        for (let first = 0; first < line.length; first += across) {
          const part = line.slice(first, first + across);
          part.forEach((node, i) => {
            [node.x, node.y] = [((across - part.length) / 2 + i) * stepX + 4, y];
            node.box.setAttribute("transform", `translate(${node.x},${node.y})`);
          });
          y += stepY;
        }
      }
    }
    size = [across * stepX, Math.max(y, 40)];
    svg.setAttribute("viewBox", `0 0 ${size.join(" ")}`);
  };

  // An arrow that follows from others is left out.
  const connect = () => {
    arrows.replaceChildren();
    for (const to of shown) {
      const needs = to.needs.filter((need) => shown.includes(need));
      for (const from of needs.filter((need) => !needs.some((other) => restsOn(other).has(need)))) {
        const [x0, y0, x1, y1] = [from.x + width / 2, from.y + height, to.x + width / 2, to.y];
        const d = `M${x0},${y0}C${x0},${y0 + 20} ${x1},${y1 - 20} ${x1},${y1}m-3,-6l3,6l3,-6`;
        arrows.append(create("path", { d, "data-from": from.id, "data-to": to.id }));
      }
    }
  };

  const light = (id) => {
    for (const arrow of arrows.children) arrow.classList.toggle("lit", [arrow.dataset.from, arrow.dataset.to].includes(id));
  };

  const zoom = (factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => {
    const before = scale;
    scale = Math.min(3, Math.max(0.25, scale * factor));
    [svg.style.width, svg.style.height] = size.map((length) => `${length * scale}px`);
    canvas.scrollTo(((canvas.scrollLeft + x) * scale) / before - x, ((canvas.scrollTop + y) * scale) / before - y);
    form.elements.whole.textContent = `${Math.round(scale * 100)}%`;
  };

  const linkTo = (node) => create("a", { href: node.href }, `${node.number} · ${node.name}`);

  // All that the selected statement rests on, by chapter.
  const list = () => {
    panel.hidden = !selected;
    if (!selected) return panel.replaceChildren();
    const below = nodes.filter((node) => restsOn(selected).has(node));
    const details = create("details", innerWidth > 700 ? { open: "" } : {}, create("summary", {}, `Rests on ${below.length} statement${below.length === 1 ? "" : "s"}`));
    for (const label of labels) {
      const here = below.filter((node) => node.chapter === label.dataset.chapter);
      if (here.length) details.append(create("p", {}, label.textContent), create("ul", {}, ...here.map((node) => create("li", {}, linkTo(node)))));
    }
    const heading = create("p", {}, create("strong", {}, selected.number), ` · ${selected.name}`);
    const go = create("p", {}, create("a", { href: selected.href, class: "go" }, "Go to the statement"));
    panel.replaceChildren(heading, create("p", {}, selected.state), go, details);
  };

  const say = () => {
    const about = selected ? `What ${selected.number} rests on: ${shown.length - 1} of ${nodes.length} statements.` : `${shown.length} of ${nodes.length} statements.`;
    form.querySelector("[role=status]").textContent = shown.length ? about : "No statement has such a name or number; “Show all” begins again.";
  };

  const draw = () => {
    across = Math.max(1, Math.floor(canvas.clientWidth / stepX));
    place();
    connect();
    zoom(1);
  };

  const update = () => {
    const words = form.elements.query.value.toLowerCase().split(/\s+/);
    const chapter = form.elements.chapter.value;
    const fits = (node) => (!chapter || node.chapter === chapter) && words.every((word) => node.words.includes(word));
    shown = nodes.filter((node) => (selected ? node === selected || restsOn(selected).has(node) : fits(node)));
    for (const { box } of nodes) box.classList.toggle("selected", box === selected?.box);
    list();
    say();
    draw();
    light(selected?.id);
    if (selected) canvas.scrollTo(0, selected.y * scale - canvas.clientHeight / 2);
    else canvas.scrollTo(0, 0);
  };

  // The selected statement is part of the address: it can be linked to, and going back works.
  const follow = () => {
    const found = nodes.find((node) => `#${node.id}` === decodeURIComponent(location.hash)) ?? null;
    if (found === selected) return;
    selected = found;
    update();
  };
  const clear = () => {
    selected = null;
    if (location.hash) history.pushState(null, "", location.pathname + location.search);
    update();
  };

  const nodeAt = (event) => nodes.find((node) => node.box === event.target.closest?.("a"));
  svg.addEventListener("click", (event) => {
    const node = nodeAt(event);
    if (!node || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    node.box.dispatchEvent(new Event("mouseleave")); // a preview of the statement closes
    location.hash = node.id;
  });
  for (const type of ["mouseover", "focusin"]) svg.addEventListener(type, (event) => nodeAt(event) && light(nodeAt(event).id));
  for (const type of ["mouseleave", "focusout"]) svg.addEventListener(type, () => light(selected?.id));

  form.elements.chapter.addEventListener("change", clear);
  form.elements.query.addEventListener("input", clear);
  form.addEventListener("reset", () => setTimeout(clear));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (shown.length === 1) location.hash = shown[0].id;
  });
  const actions = { in: () => zoom(1.25), out: () => zoom(0.8), whole: () => zoom(1 / scale) };
  for (const [name, action] of Object.entries(actions)) form.elements[name].addEventListener("click", action);
  canvas.addEventListener("keydown", (event) => {
    const action = { "+": actions.in, "=": actions.in, "-": actions.out, 0: actions.whole, Escape: clear }[event.key];
    if (!action || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    action();
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const corner = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 300), event.clientX - corner.left, event.clientY - corner.top);
  }, { passive: false });

  let apart = 0;
  const pinch = (event) => {
    if (event.touches.length !== 2) return (apart = 0);
    event.preventDefault();
    const [a, b] = event.touches, now = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY), corner = canvas.getBoundingClientRect();
    if (apart) zoom(now / apart, (a.clientX + b.clientX) / 2 - corner.left, (a.clientY + b.clientY) / 2 - corner.top);
    apart = now;
  };
  for (const type of ["touchstart", "touchmove", "touchend"]) canvas.addEventListener(type, pinch, { passive: false });

  root.classList.add("live");
  form.hidden = false;
  for (const { box } of nodes) box.setAttribute("role", "button");
  if (innerWidth <= 700) form.elements.chapter.value = labels[0].dataset.chapter; // one chapter fits a phone
  addEventListener("hashchange", follow);
  new ResizeObserver(() => Math.max(1, Math.floor(canvas.clientWidth / stepX)) !== across && draw()).observe(canvas);
  update();
  follow();
})();
