// JupyterLab shows statements, proofs and boxes, which in a notebook are divs of Quarto's markdown. Only what is shown changes; `make lab` loads this file as it is.
(() => {
  const WORDS = {
    thm: "Theorem", lem: "Lemma", prp: "Proposition", cor: "Corollary", def: "Definition", exm: "Example", rem: "Remark", alg: "Algorithm", exr: "Exercise",
  };
  const STYLE = `
    .kx-statement, .kx-box { margin: 1em 0; padding: 0.5em 1em 0.1em; border-left: 4px solid var(--jp-brand-color1); background: var(--jp-layout-color2); }
    .kx-box { border-left-color: var(--jp-warn-color1); }
    .kx-proof { margin: 0 0 1em; padding-left: 1em; border-left: 1px solid var(--jp-border-color1); }
    .kx-proof > :last-child::after { content: " ∎"; }
    details.kx-box > summary { margin-bottom: 0.5em; font-weight: bold; cursor: pointer; }`;

  // First lines and last line of the HTML for a div with these attributes and this title.
  const open = (attributes, title) => {
    const [, id, kind] = attributes.match(/#((\w+)-[\w-]+)/) || [];
    if (WORDS[kind]) return [[`<div class="kx-statement" id="${id}">`, "", `**${WORDS[kind]}**${title && ` · ${title}`} <small>\`@${id}\`</small>`], "</div>"];
    if (attributes.includes(".proof")) {
      const name = title || (attributes.match(/name="([^"]*)"/) || [])[1];
      return [['<div class="kx-proof">', "", `*Proof${name ? ` (${name})` : ""}.*`], "</div>"];
    }
    if (attributes.includes("collapse=")) return [[`<details class="kx-box"><summary>${title}</summary>`], "</details>"];
    return [['<div class="kx-box">', "", title && `**${title}**`], "</div>"];
  };

  const plain = (text) => {
    const lines = text.split("\n"), out = [], ends = [];
    let code = "";
    while (lines.length) {
      const line = lines.shift();
      const fence = (line.match(/^\s*(`{3,}|~{3,})/) || [])[1];
      const div = !code && line.match(/^:{3,}\s*(?:\{(.*)\})?\s*$/);
      if (fence) code = !code ? fence : fence.startsWith(code) ? "" : code;
      if (div && div[1]) {
        while (lines.length && !lines[0].trim()) lines.shift();
        const title = ((lines[0] || "").match(/^#+ (.*)/) || [])[1] || "";
        if (title) lines.shift();
        const [begin, end] = open(div[1], title);
        ends.push(end);
        out.push("", ...begin, ...(div[1].includes(".proof") ? [] : [""]));
      } else if (div && ends.length) {
        out.push("", ends.pop(), "");
      } else if (code || fence) {
        out.push(line);
      } else {
        out.push(line.replace(/^(#+ .*?|: .*?|@@\d+@@)\s*\{[#.][^}]*\}\s*$/, "$1"));
      }
    }
    return out.join("\n");
  };

  let shared;
  const load = async (name) => (await Object.values(shared[name])[0].get())();
  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB.kxbook = {
    init: (scope) => { shared = scope; },
    get: async () => {
      const { IMarkdownParser } = await load("@jupyterlab/rendermime");
      const activate = (app, parser) => {
        document.head.append(Object.assign(document.createElement("style"), { textContent: STYLE }));
        const render = parser.render.bind(parser);
        parser.render = (text, ...rest) => render(plain(text), ...rest);
      };
      return () => ({ __esModule: true, default: { id: "kxbook:divs", autoStart: true, requires: [IMarkdownParser], activate } });
    },
  };
})();
