// Draws every <figure data-chart="ID"> from the JSON island ID. Colours in the figures are names such as
// "@ink" or "@entrant3"; they become the custom properties of the scheme in force, also when it changes.

const plot = window.Plotly;
const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** Value of a custom property, with an optional opacity: "@accent/0.15". */
function colour(name, style) {
  const [key, opacity] = name.slice(1).split("/");
  const value = style.getPropertyValue(`--chart-${key}`).trim() || style.getPropertyValue(`--${key}`).trim();
  if (!opacity) return value || "#888888";
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(value.slice(at, at + 2), 16));
  return `rgba(${r},${g},${b},${opacity})`;
}

/** A copy of a figure with all colour names replaced. */
function tinted(value, style) {
  if (typeof value === "string") return /^@[a-z_0-9]+(\/[0-9.]+)?$/.test(value) ? colour(value, style) : value;
  if (Array.isArray(value)) return value.map((item) => tinted(item, style));
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, tinted(item, style)]));
  return value;
}

/** A text in lines of at most so many letters, where its words allow. */
function wrapped(text, letters) {
  return text.replace(new RegExp(`(.{1,${letters}})(?: |$)`, "g"), "$1<br>").replace(/<br>$/, "");
}

function draw(figure) {
  const island = document.getElementById(figure.dataset.chart);
  const place = figure.querySelector(".plot");
  if (!island || !place) return;
  const { data, layout } = tinted(JSON.parse(island.textContent), getComputedStyle(document.documentElement));
  const narrow = place.clientWidth < 480;
  const shown = data.filter((trace) => trace.name && trace.showlegend !== false);
  const named = shown.length;
  if (narrow) {
    for (const trace of shown) trace.name = wrapped(trace.name, 32);
    layout.annotations = (layout.annotations || []).filter((note) => note.name === "row");
    layout.showlegend = named > 1;
  }
  // The legend lies at the foot of the picture, and the foot grows with it: it never covers the axis.
  const high = shown.reduce((sum, trace) => sum + trace.name.split("<br>").length, 0);
  const lines = layout.showlegend === false || named < 2 ? 0 : narrow ? high : Math.ceil(named / 4);
  const foot = 20 * lines;
  layout.legend = { ...layout.legend, yref: "container", y: 0, yanchor: "bottom", traceorder: "normal" };
  layout.margin = { ...layout.margin, b: 52 + foot, ...(narrow ? { l: 48, r: 8 } : {}) };
  layout.height = (layout.height || (narrow ? 300 : 400)) + foot;
  layout.font = { ...layout.font, family: getComputedStyle(document.body).fontFamily };
  const name = figure.dataset.name || "chart";
  plot.react(place, data, layout, {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d", "toImage"],
  });
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--surface").trim();
  for (const button of figure.querySelectorAll("[data-save]")) {
    button.hidden = false;
    button.onclick = () =>
      button.dataset.save === "csv" ? saveNumbers(figure, name) : save(data, layout, button.dataset.save, name, paper);
  }
}

/** Offer the table below a chart as CSV. */
function saveNumbers(figure, name) {
  const lines = [...figure.querySelectorAll(".chart-twin tr")].map((row) =>
    [...row.cells].map((cell) => `"${cell.textContent.replaceAll('"', '""')}"`).join(","),
  );
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
  link.download = `${name}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Offer the picture as a file, on the background of the page: a transparent one is illegible elsewhere. */
function save(data, layout, format, name, paper) {
  const whole = { ...layout, width: 1000, height: Math.max(560, layout.height), paper_bgcolor: paper, plot_bgcolor: paper };
  plot.downloadImage({ data, layout: whole }, { format, filename: name, width: 1000, height: whole.height, scale: format === "png" ? 2 : 1 });
}

if (plot) {
  const figures = new Set();
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((e) => e.isIntersecting)) {
      seen.unobserve(entry.target);
      draw(entry.target);
      entry.target.dataset.drawn = "yes";
    }
  }, { rootMargin: "200px" });
  /** Watch every figure on the page that is not watched yet: some come later. */
  const watch = () => {
    for (const figure of document.querySelectorAll("figure[data-chart]"))
      if (!figures.has(figure)) {
        figures.add(figure);
        seen.observe(figure);
      }
  };
  watch();
  document.addEventListener("htmx:after:swap", watch);
  window.addEventListener("beforeprint", () => figures.forEach(draw));
  dark.addEventListener("change", () => [...figures].filter((f) => f.dataset.drawn).forEach(draw));
}
