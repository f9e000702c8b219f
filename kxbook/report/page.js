"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const state = {step: data.chosen, leaf: null, x: 0, y: Math.min(1, data.axes.length - 1)};
function make(name, attributes, ...children) {
  const svg = "svg g rect path text circle line title".split(" ").includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name)
      : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) e.setAttribute(key, value);
  e.append(...children.map(c => c instanceof Node ? c : document.createTextNode(c)));
  return e;
}

const bdi = text => make("bdi", {}, text);
const short = (text, n) => [...text].length > n ? [...text].slice(0, n - 1).join("") + "…"
    : text;
const pen = document.createElement("canvas").getContext("2d");
function fit(text, size, weight, room) {
  pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  let n = [...text].length;
  while (n > 1 && pen.measureText(short(text, n)).width > room) n--;
  return short(text, n);
}
const percent = share => (share > 0 && share < 1 ? (100 * share).toFixed(1)
    : Math.round(100 * share)) + "%";
const sum = values => values.reduce((a, b) => a + b, 0);
const count = (n, word) => n.toLocaleString("en") + " " + word + (n === 1 ? "" : "s");
const now = () => data.steps[state.step];
const price = value => value === null ? "infinite" : value.toFixed(value < 10 ? 3 : 1);
const leaves = () => now().nodes.map((node, i) => ({...node, i})).filter(node => !node.ask);
function sentence(when) {
  if (!when.length) return [document.createTextNode("in any case")];
  return when.flatMap(([name, words], i) => [i ? " and " : "", bdi(name), " " + words]);
}

// One shape for each cluster beside its colour, as a path around (x, y).
const polygon = (x, y, unit, steps) =>
  `M${x} ${y}` + steps.map(([a, b]) => `l${a * unit} ${b * unit}`).join("") + "z";
const shapes = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  (x, y, r) => `M${x - r * .9} ${y - r * .9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`,
  (x, y, r) => `M${x} ${y - r * 1.2}l${r * 1.15} ${r * 2}h${-r * 2.3}z`,
  (x, y, r) =>
      polygon(x, y - r * 1.25, r * 1.25, [[1, 1], [-1, 1], [-1, -1]]),
  (x, y, r) => `M${x} ${y + r * 1.2}l${r * 1.15} ${-r * 2}h${-r * 2.3}z`,
  (x, y, r) =>
      polygon(x - r * .4, y - r * 1.2, r * .8, [[1, 0], [0, 1], [1, 0], [0, 1], [-1, 0], [0, 1],
        [-1, 0], [0, -1], [-1, 0], [0, -1], [1, 0]]),
];
const shape = (c, x, y, r) => shapes[c % shapes.length](x, y, r);
const swatch = c => make("svg", {viewBox: "0 0 16 16", class: "swatch", "aria-hidden": "true"},
  make("path", {d: shape(c, 8, 8, 6), fill: data.colours[c], class: "dot"}));

function pick(i) { state.leaf = state.leaf === i ? null : i; draw(); }
function layout(nodes) {
  const place = {};
  let next = 0, deepest = 0;
  (function put(i, depth) {
    deepest = Math.max(deepest, depth);
    const n = nodes[i];
    place[i] = n.ask ? {x: (put(n.yes, depth + 1) + put(n.no, depth + 1)) / 2, y: depth}
        : {x: next++, y: depth};
    return place[i].x;
  })(0, 0);
  return {place, across: next, deepest};
}

function boxLine(text, y, size, weight) {
  return make("text", {x: 74, y, "font-size": size, "font-weight": weight,
      "text-anchor": "middle"}, fit(text, size, weight, 136));
}
function treeBox(n, i, x, y) {
  const box = make("g", {transform: `translate(${x - 74} ${y})`},
    make("rect", {class: "box", width: 148, height: n.ask ? 48 : 56, rx: 8}));
  if (n.ask) {
    box.append(make("title", {}, n.ask.join(" ")), boxLine(n.ask[0], 20, 13, 600),
        boxLine(n.ask[1].replace(/^is /, ""), 38, 12, 400));
    return box;
  }
  const total = sum(n.counts), name = data.clusters[n.label];
  box.append(make("rect", {width: 148, height: 6, rx: 3, fill: data.colours[n.label]}),
    boxLine(name, 26, 13, 600),
    boxLine(`${count(total, "row")} · ${percent(total / data.n)}`, 44, 12, 400));
  const button = {class: "leaf", "data-leaf": i, role: "button", tabindex: "0",
    "aria-pressed": String(state.leaf === i),
    "aria-label": `Leaf: ${name}, ${count(total, "row")}`};
  for (const [key, value] of Object.entries(button)) box.setAttribute(key, value);
  box.addEventListener("click", () => pick(i));
  box.addEventListener("keydown", e => {
    if (e.key === "Enter" || e.key === " ") { e.preventDefault(); pick(i); }
  });
  return box;
}

function drawTree() {
  const nodes = now().nodes, W = 160, H = 96, {place, across, deepest} = layout(nodes);
  const width = across * W, height = deepest * H + 66;
  const X = i => (place[i].x + .5) * W, Y = i => place[i].y * H + 4;
  const links = make("g"), boxes = make("g");
  nodes.forEach((n, i) => {
    if (n.ask) for (const [child, word] of [[n.yes, "yes"], [n.no, "no"]]) {
      const x0 = X(i), y0 = Y(i) + 48, x1 = X(child), y1 = Y(child), m = (y0 + y1) / 2;
      const d = `M${x0} ${y0}C${x0} ${m} ${x1} ${m} ${x1} ${y1}`, left = word === "yes";
      links.append(make("path", {class: "link", d}),
        make("text", {x: x1 + (left ? -6 : 6), y: y1 - 9, "font-size": 11, class: "quiet",
          "text-anchor": left ? "end" : "start"}, word));
    }
    boxes.append(treeBox(n, i, X(i), Y(i)));
  });
  const room = $("tree").clientWidth || 1000;
  const w = width <= room ? width : Math.max(room, width * .8);
  const shown = {viewBox: `0 0 ${width} ${height}`, width: w, height: height * w / width,
    role: "group", "aria-label": `Decision tree, leaves: ${now().leaves}`};
  $("tree").replaceChildren(make("svg", shown, links, boxes));
  $("outline").replaceChildren(outline(0));
}

function outline(i) {
  const n = now().nodes[i];
  if (!n.ask) {
    const total = sum(n.counts);
    const b = make("button", {type: "button", "data-leaf": i,
        "aria-pressed": String(state.leaf === i)}, swatch(n.label),
      bdi(data.clusters[n.label]), ` · ${count(total, "row")}`);
    b.addEventListener("click", () => pick(i));
    return make("li", {}, b);
  }
  const item = make("li", {}, bdi(n.ask[0]), " " + n.ask[1]), under = make("ul");
  for (const [child, word] of [[n.yes, "yes"], [n.no, "no"]]) {
    const li = outline(child);
    li.prepend(make("b", {}, word + " "));
    under.append(li);
  }
  item.append(under);
  return item;
}

function drawLeaf() {
  const box = $("leaf"), n = state.leaf === null ? null : now().nodes[state.leaf];
  box.style.borderColor = n ? data.colours[n.label] : "";
  if (!n) { box.replaceChildren(make("p", {class: "soft hint"},
      "Choose a leaf to see its rule and its rows. Escape lets go.")); return; }
  const total = sum(n.counts), at = now().at;
  const rows = data.rows.filter((r, i) => at[i] === state.leaf);
  const parts = n.counts.flatMap((c, l) => c ? [[c, l]] : []).sort((a, b) => b[0] - a[0]);
  const also = parts.flatMap(([c, l], i) => [i ? ", " : "", `${c.toLocaleString("en")} in `,
      bdi(data.clusters[l])]);
  box.replaceChildren(
    make("h3", {}, swatch(n.label), bdi(data.clusters[n.label]), " if ", ...sentence(n.when)),
    make("p", {}, `${count(total, "row")}, ${percent(total / data.n)} of all; `
      + `${total ? percent(n.counts[n.label] / total) : "none"} of them are right. `
      + "In the clustering: ", ...also, "."),
    make("p", {class: "soft"}, "Rows " + rows.slice(0, 30).join(", ") + (rows.length > 30
        ? ", …" : "")
      + (data.rows.length < data.n ? " (of those that are drawn)" : "")));
}

function drawRules() {
  const cards = data.clusters.map((name, c) => {
    const mine = leaves().filter(n => n.label === c), total = sum(mine.map(n => sum(n.counts)));
    const right = sum(mine.map(n => n.counts[c])), list = make("ul");
    mine.forEach((n, i) => {
      if (i) list.append(make("li", {class: "or"}, "or"));
      list.append(make("li", {}, ...sentence(n.when)));
    });
    const card = make("article", {class: "card"}, make("h3", {}, swatch(c), bdi(name)),
      mine.length ? list : make("p", {}, "This tree has no leaf for it."),
      make("p", {class: "soft"}, mine.length
          ? `${count(total, "row")}, ${percent(total / data.n)} of all; `
            + `${total ? percent(right / total) : "none"} of them right` : ""));
    card.style.borderTopColor = data.colours[c];
    return card;
  });
  $("rules").replaceChildren(...cards);
}

function drawWrong() {
  const s = now(), bad = leaves().map(n => ({...n, total: sum(n.counts),
      wrong: sum(n.counts) - n.counts[n.label]})).filter(n => n.wrong);
  $("wrongsay").textContent = s.wrong === 0
      ? "None: with these leaves the tree and the clustering agree on every row."
    : `${count(s.wrong, "row")} of ${data.n.toLocaleString("en")} `
      + `(${percent(s.wrong / data.n)}) end`
      + " in another cluster than the clustering gave them. They lie in these leaves:";
  const rows = bad.sort((a, b) => b.wrong - a.wrong).slice(0, 12).map(n => make("tr", {},
    make("td", {}, swatch(n.label), bdi(data.clusters[n.label]), " if ", ...sentence(n.when)),
    make("td", {}, n.wrong.toLocaleString("en")), make("td", {},
        n.total.toLocaleString("en"))));
  $("wrongleaves").replaceChildren(...(rows.length ? [table(["leaf", "wrong rows", "of"],
      rows)] : []));
  const each = data.rows.map((r, i) => [r, i]).filter(([r, i]) =>
      s.nodes[s.at[i]].label !== data.labels[i]);
  const lines = each.slice(0, 100).map(([r, i]) => make("tr", {}, make("td", {}, String(r)),
    make("td", {class: "words"}, bdi(data.clusters[data.labels[i]])), make("td",
        {class: "words"}, bdi(data.clusters[s.nodes[s.at[i]].label])),
    ...data.axes.slice(0, 2).map((a, j) => make("td", {}, String(data.points[j][i])))));
  const head = ["row", "clustering", "tree", ...data.axes.slice(0, 2).map(a => a.name)];
  $("wrongrows").hidden = !lines.length;
  $("wrongtable").replaceChildren(...(lines.length ? [table(head, lines)] : []));
  function table(names, body) {
    const cells = names.map((t, i) => make("th", {scope: "col", class: t === "clustering"
        || t === "tree" ? "words" : ""}, bdi(t)));
    return make("table", {}, make("thead", {}, make("tr", {}, ...cells)), make("tbody", {},
        ...body));
  }
}

const width = (svg, most) => Math.min(Math.max(svg.clientWidth || most, 280), most);
function ticks(lo, hi) {
  const rough = (hi - lo) / 5, ten = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5,
      10].map(f => f * ten).find(s => s >= rough);
  const found = [];
  for (let t = Math.ceil(lo / step); t * step <= hi + 1e-9 * step && found.length < 12;
      t++) found.push(+(t * step).toPrecision(15));
  return found;
}
const number = v => Math.abs(v) >= 1e6 || (v && Math.abs(v) < 1e-4) ? v.toExponential(1)
    : v.toLocaleString("en", {maximumFractionDigits: 5});
// Where short numbers would be the same for two ticks, they are counted from the first one.
function scale(lo, hi, name) {
  const at = ticks(lo, hi), alike = new Set(at.map(number)).size < at.length;
  return {at, name: alike ? `${name}, from ${at[0]}` : name,
    say: alike ? t => "+" + number(+(t - at[0]).toPrecision(6)) : number};
}
function frame(svg, xs, ys, xname, yname, W, H, L, B) {
  const range = r => r[1] > r[0] ? [r[0] - .04 * (r[1] - r[0]), r[1] + .04 * (r[1] - r[0])]
      : [r[0] - 1, r[1] + 1];
  const [a, b] = range(xs), [c, d] = range(ys);
  const X = v => L + (v - a) / (b - a) * (W - L - 8), Y = v =>
      H - B - (v - c) / (d - c) * (H - B - 8);
  const across = scale(a, b, xname), up = scale(c, d, yname);
  for (const t of across.at) svg.append(make("line", {class: "axis", x1: X(t), x2: X(t),
      y1: 8, y2: H - B}),
    make("text", {x: X(t), y: H - B + 16, "font-size": 11, "text-anchor": "middle",
        class: "quiet"}, across.say(t)));
  for (const t of up.at) svg.append(make("line", {class: "axis", x1: L, x2: W - 8,
      y1: Y(t), y2: Y(t)}),
    make("text", {x: L - 6, y: Y(t) + 4, "font-size": 11, "text-anchor": "end",
        class: "quiet"}, up.say(t)));
  svg.append(make("text", {x: (L + W) / 2, y: H - 4, "font-size": 12.5,
      "text-anchor": "middle"}, fit(across.name, 12.5, 400, W - L - 8)),
    make("text", {x: 0, y: 0, transform: `translate(13 ${(H - B) / 2}) rotate(-90)`,
        "font-size": 12.5, "text-anchor": "middle"},
      fit(up.name, 12.5, 400, H - B - 8)));
  return {X, Y, left: L, right: W - 8, top: 8, bottom: H - B};
}

function drawPicture(id, mine, withTree) {
  const svg = $(id), W = width(svg, 520), H = Math.round(W * .84), s = now(),
      ax = data.axes[state.x], ay = data.axes[state.y];
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  svg.replaceChildren();
  const f = frame(svg, data.ranges[state.x], data.ranges[state.y], ax.name, ay.name, W, H, 58,
      42);
  const cut = (v, map, open) => Math.min(Math.max(v === null ? open : map(v), Math.min(f.left,
      f.top)), Math.max(f.right, f.bottom));
  const boxes = n => (n.box[ax.axis] || [[null, null]]).flatMap(([x0, x1]) => (n.box[ay.axis]
      || [[null, null]]).map(([y0, y1]) => {
    const l = Math.max(cut(x0, f.X, f.left), f.left), r = Math.min(cut(x1, f.X, f.right),
        f.right);
    const t = Math.max(cut(y1, f.Y, f.top), f.top), b = Math.min(cut(y0, f.Y, f.bottom),
        f.bottom);
    return {x: l, y: t, width: Math.max(r - l, 0), height: Math.max(b - t, 0)};
  }));
  const flat = leaves().every(n => Object.keys(n.box).every(a => +a === ax.axis
      || +a === ay.axis));
  if (withTree && flat) for (const n of leaves()) for (const b of boxes(n))
    svg.append(make("rect", {...b, fill: data.colours[n.label], style: "opacity:var(--tint)"}));
  if (withTree) $("flat").textContent = flat ? "The coloured regions are those of the tree."
    : "The tree asks about other columns too, so its regions cannot be drawn in these two.";
  const px = data.points[state.x], py = data.points[state.y], r = data.rows.length > 600 ? 2.6
      : 4;
  for (const chosen of [false, true]) data.clusters.forEach((name, c) => {
    const d = mine.map((l, i) => l === c && (state.leaf === null
        || s.at[i] === state.leaf) === chosen ? shape(c, +f.X(px[i]).toFixed(1),
        +f.Y(py[i]).toFixed(1), r) : "").join("");
    if (d) svg.append(make("path", {d, fill: data.colours[c], class: "dot", opacity: chosen ? 1
        : .15}));
  });
  const wrong = mine.map((l, i) => s.nodes[s.at[i]].label !== data.labels[i]
      ? shapes[0](+f.X(px[i]).toFixed(1), +f.Y(py[i]).toFixed(1), r + 3.5) : "").join("");
  if (wrong) svg.append(make("path", {d: wrong, class: "ring"}));
  if (state.leaf !== null) for (const b of boxes(s.nodes[state.leaf])) svg.append(make("rect",
      {...b, class: "chosen"}));
  svg.setAttribute("aria-label",
      `${data.rows.length} rows by ${ax.name} and ${ay.name}, coloured by the `
      + (withTree ? "tree" : "clustering"));
}

function drawPrice() {
  const svg = $("price"), W = width(svg, 640), H = 250, some = data.steps.filter(s =>
      s.price !== null);
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  svg.replaceChildren();
  if (!some.length) return;
  const xs = [some[0].leaves, some[some.length - 1].leaves], ps = some.map(s => s.price);
  const f = frame(svg, xs, [Math.min(1, ...ps), Math.max(...ps)], "leaves", "price", W, H, 58,
      42);
  svg.append(make("path", {class: "curve", d: some.map((s, i) => (i ? "L" : "M")
      + f.X(s.leaves) + " " + f.Y(s.price)).join("")}));
  for (const s of some) svg.append(make("circle", {cx: f.X(s.leaves), cy: f.Y(s.price),
      r: s === now() ? 7 : 3, fill: "var(--accent)"}));
  svg.setAttribute("aria-label",
      "Price against number of leaves: "
      + some.map(s => `${s.leaves} leaves ${price(s.price)}`).join(", "));
}

function draw() {
  const focus = document.activeElement && document.activeElement.getAttribute("data-leaf");
  const inTree = focus !== null && document.activeElement.closest("#tree, #outline");
  const s = now(),
      text = (s.leaves === 1 ? "1 leaf" : s.leaves + " leaves")
        + ` · price ${price(s.price)} · ${count(s.wrong, "wrong row")}`;
  $("slider").value = state.step;
  $("slider").setAttribute("aria-valuetext", text);
  $("now").textContent = text + (state.step === data.chosen ? " · the tree of this report"
      : "");
  drawTree(); drawLeaf(); drawRules(); drawWrong(); drawPrice();
  drawPicture("left", data.labels, false);
  drawPicture("right", s.at.map(i => s.nodes[i].label), true);
  if (inTree) { const again = inTree.querySelector(`[data-leaf="${focus}"]`);
      if (again) again.focus(); }
}

$("slider").max = data.steps.length - 1;
$("slider").addEventListener("input", e => { state.step = +e.target.value; state.leaf = null;
    draw(); });
for (const key of ["x", "y"]) {
  data.axes.forEach((a, i) => $(key).append(make("option", {value: i}, a.name)));
  $(key).value = state[key];
  $(key).addEventListener("change", e => { state[key] = +e.target.value; draw(); });
}
$("legend").replaceChildren(...data.clusters.map((name, c) => make("li", {}, swatch(c),
    bdi(name))),
  make("li", {}, make("svg", {viewBox: "0 0 16 16", "aria-hidden": "true"}, make("path",
      {d: shapes[0](8, 8, 6), class: "ring"})), "wrong in the tree"));
document.addEventListener("keydown", e => { if (e.key === "Escape"
    && state.leaf !== null) { state.leaf = null; draw(); } });
let wide = innerWidth;
addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; draw(); } });
addEventListener("beforeprint", () =>
    document.querySelectorAll("details").forEach(d => { d.open = true; }));
draw();
