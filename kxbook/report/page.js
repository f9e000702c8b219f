"use strict";

// The program of a report. First what is computed: functions of their arguments alone.

/** The sum of some numbers. */
const sum = (values) => values.reduce((a, b) => a + b, 0);

/** A whole number with commas. */
const whole = (n) => n.toLocaleString("en");

/** How many of something. */
const count = (n, word) => `${whole(n)} ${word}${n === 1 ? "" : "s"}`;

/** A share in per cent that is 100% or 0% only if it is all or nothing, as in Python. */
function percent(share) {
  if (!(share > 0 && share < 1)) return `${(100 * share).toFixed(0)}%`;
  const seen = (digits) => 0 < +share.toFixed(digits + 2) && +share.toFixed(digits + 2) < 1;
  return `${(100 * share).toFixed([1, 2].find(seen) || 3)}%`;
}

/** A number beside a tick. */
function number(value) {
  const size = Math.abs(value);
  return size >= 1e6 || (size > 0 && size < 1e-4)
    ? value.toExponential(1)
    : value.toLocaleString("en", { maximumFractionDigits: 5 });
}

/** A text of at most so many characters. */
function shorten(text, most) {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}

/** The number nearest to a value between two others. */
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** An interval with a margin; around a single value, too. */
function widened([low, high]) {
  const margin = high > low ? 0.04 * (high - low) : 1;
  return [low - margin, high + margin];
}

/** Round numbers between two ends, about five of them. */
function ticks(low, high) {
  const rough = (high - low) / 5;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * ten).find((s) => s >= rough);
  const places = [];
  for (let i = Math.ceil(low / step); i * step <= high + 1e-9 * step && places.length < 12; i++) {
    places.push(+(i * step).toPrecision(15));
  }
  return places;
}

/** Ticks, their texts and the name of an axis; ticks that would look alike count from the first. */
function scale(low, high, name) {
  const at = ticks(low, high);
  if (new Set(at.map(number)).size === at.length) return { at, name, text: number };
  const text = (tick) => `+${number(+(tick - at[0]).toPrecision(6))}`;
  return { at, name: `${name}, from ${at[0]}`, text };
}

/** Where a picture of a size puts the values of two columns. */
function frameOf(xs, ys, width, height) {
  const [left, right, top, bottom] = [58, width - 8, 8, height - 42];
  const [x0, x1] = widened(xs);
  const [y0, y1] = widened(ys);
  const X = (value) => left + ((value - x0) / (x1 - x0)) * (right - left);
  const Y = (value) => bottom - ((value - y0) / (y1 - y0)) * (bottom - top);
  return { X, Y, x0, x1, y0, y1, left, right, top, bottom, width, height };
}

/** A closed path from a point, in steps of a unit: across, down, across, down, and so on. */
const polygon = (x, y, unit, steps) =>
  `M${x} ${y}${steps.map((step, i) => (i % 2 ? " " : "l") + step * unit).join("")}z`;

const DIAMOND = [1, 1, -1, 1, -1, -1];
const PLUS = [1, 0, 0, 1, 1, 0, 0, 1, -1, 0, 0, 1, -1, 0, 0, -1, -1, 0, 0, -1, 1, 0];

/** One shape for each cluster beside its colour: paths around (x, y). */
const SHAPES = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  (x, y, r) => `M${x - r * 0.9} ${y - r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`,
  (x, y, r) => `M${x} ${y - r * 1.2}l${r * 1.15} ${r * 2}h${-r * 2.3}z`,
  (x, y, r) => polygon(x, y - r * 1.25, r * 1.25, DIAMOND),
  (x, y, r) => `M${x} ${y + r * 1.2}l${r * 1.15} ${-r * 2}h${-r * 2.3}z`,
  (x, y, r) => polygon(x - r * 0.4, y - r * 1.2, r * 0.8, PLUS),
];

/** The shape of a cluster. */
const shape = (cluster, x, y, r) => SHAPES[cluster % SHAPES.length](x, y, r);

/** A node with the conditions that its numbers stand for: words and ends, or words and boxes. */
function unpacked(node, conditions) {
  if ("ask" in node) {
    const [subject, words, axis, [[lo, hi]]] = conditions[node.ask];
    return { ...node, ask: [subject, `${words}?`], axis, lo, hi };
  }
  const mine = (node.when || []).map((i) => conditions[i]);
  const box = Object.fromEntries(mine.map(([, , axis, intervals]) => [axis, intervals]));
  return { ...node, when: node.when && mine.map(([subject, words]) => [subject, words]), box };
}

/** Leaves side by side, each question above the middle of its answers. */
function layout(nodes) {
  const place = {};
  let across = 0;
  let deepest = 0;
  (function put(i, depth) {
    const { ask, yes, no } = nodes[i];
    deepest = Math.max(deepest, depth);
    const x = ask ? (put(yes, depth + 1) + put(no, depth + 1)) / 2 : across++;
    place[i] = { x, y: depth };
    return x;
  })(0, 0);
  return { place, across, deepest };
}

/** The leaves from left to right, each with its number and how many of its rows are wrong. */
function leavesOf(nodes, i = 0) {
  const node = nodes[i];
  if (node.ask) return [...leavesOf(nodes, node.yes), ...leavesOf(nodes, node.no)];
  const total = sum(node.counts);
  return [{ ...node, i, total, wrong: total - node.counts[node.label] }];
}

/** Whether leaves depend on two columns only, so that their regions can be drawn. */
const isFlat = (leaves, x, y) =>
  leaves.every(({ box }) => Object.keys(box).every((axis) => +axis === x || +axis === y));

/** The rectangles of a leaf in a frame: one for each pair of its intervals. */
function boxesOf({ box }, x, y, frame) {
  const { X, Y, left, right, top, bottom } = frame;
  const across = ([low, high]) => [
    low === null ? left : clamp(X(low), left, right),
    high === null ? right : clamp(X(high), left, right),
  ];
  const down = ([low, high]) => [
    high === null ? top : clamp(Y(high), top, bottom),
    low === null ? bottom : clamp(Y(low), top, bottom),
  ];
  const open = [[null, null]];
  return (box[x] || open)
    .map(across)
    .flatMap(([x0, x1]) =>
      (box[y] || open)
        .map(down)
        .map(([y0, y1]) => ({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })),
    );
}

/** The drawn rows that a tree gets wrong, by their place among the drawn ones. */
const wrongRows = (step, labels) =>
  labels.flatMap((label, i) => (step.nodes[step.at[i]].label === label ? [] : [i]));

/** The conditions of a leaf as text. */
const conditionText = ({ when }) =>
  when.map((words) => words.join(" ")).join(" and ") || "in any case";

/** One rule for each cluster as text, like rules_text in Python. */
function rulesText(nodes, clusters) {
  const reached = leavesOf(nodes).filter((leaf) => leaf.when);
  return clusters
    .map((name, c) => [name, reached.filter((leaf) => leaf.label === c).map(conditionText)])
    .filter(([, rules]) => rules.length)
    .map(([name, rules]) => `${name} if\n     ${rules.join("\n  or ")}`)
    .join("\n");
}

/** What kxbook.Explanation.from_json reads: the document of the report with the tree of a step. */
function documentOf(head, step, chosen) {
  const array = (key, otherwise) => step.nodes.map((node) => node[key] ?? otherwise);
  const { importances, ...rest } = head;
  const settings = chosen ? {} : { leaves_on_page: step.leaves };
  return {
    ...rest,
    settings: { ...head.settings, ...settings },
    price: step.price,
    ...(chosen && { importances }),
    tree: {
      ...head.tree,
      axis: array("axis", -1),
      left: array("yes", -1),
      right: array("no", -1),
      label: array("label", -1),
      lo: array("lo", null),
      hi: array("hi", null),
    },
  };
}

// What is shown: the data of the page, the state, and functions that draw the one in the other.

const data = JSON.parse(document.getElementById("data").textContent);
for (const step of data.steps) {
  step.nodes = step.nodes.map((node) => unpacked(node, data.conditions));
}
const state = { step: data.chosen, leaf: null, x: 0, y: Math.min(1, data.axes.length - 1) };

const byId = (id) => document.getElementById(id);
const now = () => data.steps[state.step];
const SVG = new Set(["svg", "g", "rect", "path", "text", "circle", "line", "title"]);

/** An element; whatever is a text stays a text. */
function make(name, attributes, ...children) {
  const element = SVG.has(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** A name, which may be written from right to left. */
const bdi = (text) => make("bdi", {}, text);

/** The conditions of a leaf. */
function sentence(when) {
  if (!when) return ["never"];
  if (!when.length) return ["in any case"];
  return when.flatMap(([name, words], i) => [i ? " and " : "", bdi(name), ` ${words}`]);
}

/** A small picture of a shape. */
const icon = (path, attributes) =>
  make(
    "svg",
    { viewBox: "0 0 16 16", class: "swatch", "aria-hidden": "true" },
    make("path", { d: path, ...attributes }),
  );

/** The mark of a cluster: its shape in its colour. */
const swatch = (c) => icon(shape(c, 8, 8, 6), { fill: data.colours[c], class: "dot" });

/** A table of rows that were made elsewhere. */
function tableOf(names, rows) {
  const head = names.map((name) => {
    const kind = name === "clustering" || name === "tree" ? "words" : "";
    return make("th", { scope: "col", class: kind }, bdi(name));
  });
  return make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
}

const pen = document.createElement("canvas").getContext("2d");

/** A text that is shortened until it fits. */
function fit(text, size, weight, room) {
  pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  let most = [...text].length;
  while (most > 1 && pen.measureText(shorten(text, most)).width > room) most--;
  return shorten(text, most);
}

/** The sentences at the top, which Python has written for every position of the slider. */
function drawHeadline() {
  const { headline, lead, tiles, leaves, wrong } = now();
  document.querySelector("h1").textContent = headline;
  byId("lead").textContent = lead;
  ["leaves", "right", "price"].forEach((id, i) => {
    byId(`tile-${id}`).textContent = tiles[i];
  });
  const size = leaves === 1 ? "1 leaf" : `${leaves} leaves`;
  const text = `${size} · price ${tiles[2]} · ${count(wrong, "wrong row")}`;
  byId("slider").value = state.step;
  byId("slider").setAttribute("aria-valuetext", text);
  const chosen = state.step === data.chosen;
  byId("now").textContent = text + (chosen ? " · the tree of this report" : "");
  for (const note of document.querySelectorAll(".whose")) note.hidden = chosen;
}

/** Room for the longest headline, so that the slider stays where it is. */
function reserveRoom() {
  for (const [key, element] of [
    ["headline", document.querySelector("h1")],
    ["lead", byId("lead")],
  ]) {
    element.style.minHeight = "";
    const heights = data.steps.map((step) => {
      element.textContent = step[key];
      return Math.ceil(element.getBoundingClientRect().height);
    });
    element.style.minHeight = `${Math.max(...heights)}px`;
  }
}

/** Choose a leaf, or let go of it. */
function pick(i) {
  state.leaf = state.leaf === i ? null : i;
  draw();
}

const BOX = 148; // the width of a box of the tree

/** A line of text in a box of the tree. */
const boxLine = (text, y, size, weight) =>
  make(
    "text",
    { x: BOX / 2, y, "font-size": size, "font-weight": weight, "text-anchor": "middle" },
    fit(text, size, weight, BOX - 12),
  );

/** A question of the tree. */
function questionBox({ ask }) {
  const [name, words] = ask;
  return make(
    "g",
    {},
    make("title", {}, ask.join(" ")),
    make("rect", { class: "box", width: BOX, height: 48, rx: 8 }),
    boxLine(name, 20, 13, 600),
    boxLine(words.replace(/^is /, ""), 38, 12, 400),
  );
}

/** A leaf of the tree: a button for the mouse, the keyboard and the screen reader. */
function leafBox({ label, counts }, i) {
  const rows = sum(counts);
  const name = data.clusters[label];
  const button = {
    class: "leaf",
    "data-leaf": i,
    role: "button",
    tabindex: "0",
    "aria-pressed": state.leaf === i,
    "aria-label": `Leaf: ${name}, ${count(rows, "row")}`,
  };
  const box = make(
    "g",
    button,
    make("rect", { class: "box", width: BOX, height: 56, rx: 8 }),
    make("rect", { width: BOX, height: 6, rx: 3, fill: data.colours[label] }),
    boxLine(name, 26, 13, 600),
    boxLine(`${count(rows, "row")} · ${percent(rows / data.n)}`, 44, 12, 400),
  );
  box.addEventListener("click", () => pick(i));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    pick(i);
  });
  return box;
}

/** The line from a question to an answer. */
function linkTo(from, to, word) {
  const middle = (from.y + to.y) / 2;
  const d = `M${from.x} ${from.y}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y}`;
  const [shift, anchor] = word === "yes" ? [-6, "end"] : [6, "start"];
  const place = { x: to.x + shift, y: to.y - 9, "font-size": 11, "text-anchor": anchor };
  return [make("path", { class: "link", d }), make("text", { ...place, class: "quiet" }, word)];
}

/** The tree; never below four fifths of its size, where its text would be too small. */
function drawTree() {
  const { nodes, leaves } = now();
  const { place, across, deepest } = layout(nodes);
  const [width, height] = [across * (BOX + 12), deepest * 96 + 66];
  const at = (i) => ({ x: (place[i].x + 0.5) * (BOX + 12), y: place[i].y * 96 + 4 });
  const links = make("g", {});
  const boxes = make("g", {});
  nodes.forEach((node, i) => {
    const { x, y } = at(i);
    const box = node.ask ? questionBox(node) : leafBox(node, i);
    box.setAttribute("transform", `translate(${x - BOX / 2} ${y})`);
    boxes.append(box);
    if (!node.ask) return;
    links.append(...linkTo({ x, y: y + 48 }, at(node.yes), "yes"));
    links.append(...linkTo({ x, y: y + 48 }, at(node.no), "no"));
  });
  const room = byId("tree").clientWidth || 1000;
  const shown = width <= room ? width : Math.max(room, width * 0.8);
  const attributes = {
    viewBox: `0 0 ${width} ${height}`,
    width: shown,
    height: (height * shown) / width,
    role: "group",
    "aria-label": `Decision tree, leaves: ${leaves}`,
  };
  byId("tree").replaceChildren(make("svg", attributes, links, boxes));
}

/** The tree as nested lists, for phones. */
function outline(i) {
  const node = now().nodes[i];
  if (!node.ask) {
    const button = make(
      "button",
      { type: "button", "data-leaf": i, "aria-pressed": state.leaf === i },
      swatch(node.label),
      bdi(data.clusters[node.label]),
      ` · ${count(sum(node.counts), "row")}`,
    );
    button.addEventListener("click", () => pick(i));
    return make("li", {}, button);
  }
  const answers = ["yes", "no"].map((word) => {
    const item = outline(node[word]);
    item.prepend(make("b", {}, `${word} `));
    return item;
  });
  const [name, words] = node.ask;
  return make("li", {}, bdi(name), ` ${words}`, make("ul", {}, ...answers));
}

/** How many rows a rule has, and how many of them are right. */
const sizeWords = (rows, right) =>
  `${count(rows, "row")}, ${percent(rows / data.n)} of all; ` +
  `${rows ? percent(right / rows) : "none"} of them`;

/** What there is to say about a leaf. */
function leafWords({ label, when, counts }) {
  const total = sum(counts);
  const rows = data.rows.filter((_, i) => now().at[i] === state.leaf);
  const parts = counts
    .flatMap((rowsOfCluster, c) => (rowsOfCluster ? [[rowsOfCluster, c]] : []))
    .sort((a, b) => b[0] - a[0])
    .flatMap(([n, c], i) => [i ? ", " : "", `${whole(n)} in `, bdi(data.clusters[c])]);
  const some = data.rows.length < data.n ? " (of those that are drawn)" : "";
  const list = rows.slice(0, 30).join(", ") + (rows.length > 30 ? ", …" : "");
  return [
    make("h3", {}, swatch(label), bdi(data.clusters[label]), " if ", ...sentence(when)),
    make(
      "p",
      {},
      `${sizeWords(total, counts[label])} are right. In the clustering: `,
      ...parts,
      ".",
    ),
    make("p", { class: "soft" }, `Rows ${list}${some}`),
  ];
}

/** The chosen leaf; what is read aloud changes only if the words do. */
function drawLeaf() {
  const node = state.leaf === null ? null : now().nodes[state.leaf];
  const hint = "Choose a leaf to see its rule and its rows. Escape lets go.";
  const words = node ? leafWords(node) : [make("p", { class: "soft hint" }, hint)];
  const box = byId("leaf");
  box.style.borderColor = node ? data.colours[node.label] : "";
  if (box.textContent !== words.map((part) => part.textContent).join("")) {
    box.replaceChildren(...words);
  }
}

/** The rule of one cluster: a condition for each of its leaves. */
function ruleCard(name, c, leaves) {
  const mine = leaves.filter((leaf) => leaf.label === c);
  const rows = sum(mine.map((leaf) => leaf.total));
  const right = sum(mine.map((leaf) => leaf.counts[c]));
  const items = mine.flatMap(({ when }, i) => [
    ...(i ? [make("li", { class: "or" }, "or")] : []),
    make("li", {}, ...sentence(when)),
  ]);
  const body = mine.length
    ? [make("ul", {}, ...items), make("p", { class: "soft" }, `${sizeWords(rows, right)} right`)]
    : [make("p", {}, "This tree has no leaf for it.")];
  const card = make("article", { class: "card" }, make("h3", {}, swatch(c), bdi(name)), ...body);
  card.style.borderTopColor = data.colours[c];
  return card;
}

/** A card for each cluster. */
function drawRules() {
  const leaves = leavesOf(now().nodes);
  byId("rules").replaceChildren(...data.clusters.map((name, c) => ruleCard(name, c, leaves)));
}

/** The leaves with most mistakes. */
function drawWrongLeaves() {
  const { nodes, wrong } = now();
  byId("wrongwords").textContent = wrong
    ? `${count(wrong, "row")} of ${whole(data.n)} (${percent(wrong / data.n)}) end in another ` +
      "cluster than the clustering gave them. They lie in these leaves:"
    : "None: with these leaves the tree and the clustering agree on every row.";
  const rows = leavesOf(nodes)
    .filter((leaf) => leaf.wrong)
    .sort((a, b) => b.wrong - a.wrong)
    .slice(0, 12)
    .map(({ label, when, wrong: mistakes, total }) =>
      make(
        "tr",
        {},
        make("td", {}, swatch(label), bdi(data.clusters[label]), " if ", ...sentence(when)),
        make("td", {}, whole(mistakes)),
        make("td", {}, whole(total)),
      ),
    );
  const table = rows.length ? [tableOf(["leaf", "wrong rows", "of"], rows)] : [];
  byId("wrongleaves").replaceChildren(...table);
}

/** The rows that are wrong, with their numbers in the file. */
function drawWrongRows() {
  const step = now();
  const first = data.axes.slice(0, 2);
  const rows = wrongRows(step, data.labels)
    .slice(0, 100)
    .map((i) =>
      make(
        "tr",
        {},
        make("td", {}, String(data.rows[i])),
        make("td", { class: "words" }, bdi(data.clusters[data.labels[i]])),
        make("td", { class: "words" }, bdi(data.clusters[step.nodes[step.at[i]].label])),
        ...first.map((_, j) => make("td", {}, String(data.points[j][i]))),
      ),
    );
  const names = ["row", "clustering", "tree", ...first.map((axis) => axis.name)];
  byId("wrongrows").hidden = !rows.length;
  byId("wrongtable").replaceChildren(...(rows.length ? [tableOf(names, rows)] : []));
}

/** An empty picture as wide as there is room for. */
function cleared(id, most, heightOf) {
  const svg = byId(id);
  const width = clamp(svg.clientWidth || most, 280, most);
  const height = heightOf(width);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  return { svg, width, height };
}

/** The name of an axis, as far as there is room. */
function axisName(place, text, room) {
  const look = { "font-size": 12.5, "text-anchor": "middle" };
  return make("text", { ...place, ...look }, fit(text, 12.5, 400, room));
}

/** The axes of a picture. */
function drawAxes(svg, frame, xName, yName) {
  const { X, Y, x0, x1, y0, y1, left, right, top, bottom, width, height } = frame;
  const across = scale(x0, x1, xName);
  const up = scale(y0, y1, yName);
  const tick = (line, place, anchor, text) =>
    svg.append(
      make("line", { class: "axis", ...line }),
      make("text", { ...place, "font-size": 11, "text-anchor": anchor, class: "quiet" }, text),
    );
  for (const t of across.at) {
    const x = X(t);
    tick({ x1: x, x2: x, y1: top, y2: bottom }, { x, y: bottom + 16 }, "middle", across.text(t));
  }
  for (const t of up.at) {
    const y = Y(t);
    tick({ x1: left, x2: right, y1: y, y2: y }, { x: left - 6, y: y + 4 }, "end", up.text(t));
  }
  const turned = `translate(13 ${bottom / 2}) rotate(-90)`;
  svg.append(
    axisName({ x: (left + width) / 2, y: height - 4 }, across.name, right - left),
    axisName({ x: 0, y: 0, transform: turned }, up.name, bottom - top),
  );
}

/** The rows of a picture: the others first, so that the chosen ones are never covered. */
function drawRows(svg, frame, labels) {
  const { nodes, at } = now();
  const radius = data.rows.length > 600 ? 2.6 : 4;
  const x = data.points[state.x].map((value) => +frame.X(value).toFixed(1));
  const y = data.points[state.y].map((value) => +frame.Y(value).toFixed(1));
  const isChosen = (i) => state.leaf === null || at[i] === state.leaf;
  for (const chosen of [false, true]) {
    data.clusters.forEach((_, c) => {
      const mine = (label, i) => label === c && isChosen(i) === chosen;
      const d = labels.map((l, i) => (mine(l, i) ? shape(c, x[i], y[i], radius) : "")).join("");
      const look = { fill: data.colours[c], class: "dot", opacity: chosen ? 1 : 0.15 };
      if (d) svg.append(make("path", { d, ...look }));
    });
  }
  const rings = wrongRows({ nodes, at }, data.labels);
  const d = rings.map((i) => SHAPES[0](x[i], y[i], radius + 3.5)).join("");
  if (d) svg.append(make("path", { d, class: "ring" }));
}

/** The rows by two columns, coloured by the clustering or by the tree. */
function drawPicture(id, labels, byTree) {
  const [x, y] = [data.axes[state.x], data.axes[state.y]];
  const { svg, width, height } = cleared(id, 520, (w) => Math.round(w * 0.84));
  const frame = frameOf(data.ranges[state.x], data.ranges[state.y], width, height);
  drawAxes(svg, frame, x.name, y.name);
  const leaves = leavesOf(now().nodes);
  const boxes = (leaf, look) =>
    boxesOf(leaf, x.axis, y.axis, frame).map((box) => make("rect", { ...box, ...look }));
  if (byTree) {
    const flat = isFlat(leaves, x.axis, y.axis);
    const tint = (leaf) => ({ fill: data.colours[leaf.label], style: "opacity:var(--tint)" });
    if (flat) svg.append(...leaves.flatMap((leaf) => boxes(leaf, tint(leaf))));
    byId("flat").textContent = flat
      ? "The coloured regions are those of the tree."
      : "The tree asks about other columns too, so its regions cannot be drawn in these two.";
  }
  drawRows(svg, frame, labels);
  if (state.leaf !== null) svg.append(...boxes(now().nodes[state.leaf], { class: "chosen" }));
  const by = byTree ? "tree" : "clustering";
  const label = `${data.rows.length} rows by ${x.name} and ${y.name}, coloured by the ${by}`;
  svg.setAttribute("aria-label", label);
}

/** The price against the number of leaves. */
function drawPrice() {
  const { svg, width, height } = cleared("price", 640, () => 250);
  const steps = data.steps.filter((step) => step.price !== null);
  if (!steps.length) return;
  const prices = steps.map((step) => step.price);
  const sizes = [steps[0].leaves, steps[steps.length - 1].leaves];
  const frame = frameOf(sizes, [Math.min(1, ...prices), Math.max(...prices)], width, height);
  drawAxes(svg, frame, "leaves", "price");
  const places = steps.map((step) => [frame.X(step.leaves), frame.Y(step.price)]);
  svg.append(make("path", { class: "curve", d: `M${places.map((p) => p.join(" ")).join("L")}` }));
  places.forEach(([cx, cy], i) => {
    const r = steps[i] === now() ? 7 : 3;
    svg.append(make("circle", { cx, cy, r, fill: "var(--accent)" }));
  });
  const words = steps.map((step) => `${step.leaves} leaves ${step.tiles[2]}`).join(", ");
  svg.setAttribute("aria-label", `Price against number of leaves: ${words}`);
}

/** Draw the page for the state; the focus stays on the leaf that had it. */
function draw() {
  const focus = document.activeElement;
  const leaf = focus && focus.getAttribute("data-leaf");
  const home = leaf && focus.closest("#tree, #outline");
  drawHeadline();
  drawTree();
  byId("outline").replaceChildren(outline(0));
  drawLeaf();
  drawRules();
  drawWrongLeaves();
  drawWrongRows();
  drawPrice();
  drawPicture("left", data.labels, false);
  drawPicture(
    "right",
    now().at.map((i) => now().nodes[i].label),
    true,
  );
  const again = home && home.querySelector(`[data-leaf="${leaf}"]`);
  if (again) again.focus();
}

// What can be taken along, and what the reader can do.

/** Say something once. */
function tell(text) {
  byId("told").textContent = text;
}

/** The tree of the slider as a file. */
function saveTree() {
  const step = now();
  const text = JSON.stringify(documentOf(data.document, step, state.step === data.chosen), null, 1);
  const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const download = `${data.file}-${step.leaves}-leaves.json`;
  make("a", { href, download }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
  tell(`Saved as ${download}.`);
}

/** The rules of the slider's tree on the clipboard; selected, where that is not allowed. */
async function copyRules() {
  const text = rulesText(now().nodes, data.clusters);
  const box = byId("rulestext");
  box.hidden = true;
  try {
    await navigator.clipboard.writeText(text);
    tell("The rules have been copied.");
  } catch {
    box.textContent = text;
    box.hidden = false;
    getSelection().selectAllChildren(box);
    tell("The rules are selected below: copy them with Ctrl+C or ⌘C.");
  }
}

/** Put away what belongs to another tree. */
function forgetRules() {
  byId("rulestext").hidden = true;
  tell("");
}

/** Fill the controls and connect them. */
function start() {
  const slider = byId("slider");
  slider.max = data.steps.length - 1;
  slider.addEventListener("input", () => {
    state.step = +slider.value;
    state.leaf = null;
    forgetRules();
    draw();
  });
  for (const key of ["x", "y"]) {
    const select = byId(key);
    select.append(...data.axes.map((axis, i) => make("option", { value: i }, axis.name)));
    select.value = state[key];
    select.addEventListener("change", () => {
      state[key] = +select.value;
      draw();
    });
  }
  const ring = icon(SHAPES[0](8, 8, 6), { class: "ring" });
  byId("legend").replaceChildren(
    ...data.clusters.map((name, c) => make("li", {}, swatch(c), bdi(name))),
    make("li", {}, ring, "wrong in the tree"),
  );
  byId("save").addEventListener("click", saveTree);
  byId("copy").addEventListener("click", copyRules);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && state.leaf !== null) pick(state.leaf);
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    reserveRoom();
    draw();
  });
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  reserveRoom();
  draw();
}

start();
