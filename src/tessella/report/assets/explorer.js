// The slice explorer: draws the regions on a canvas, finds the one under the pointer, and says what the network is there.
"use strict";
for (const script of document.querySelectorAll('script[type="application/json"]')) (() => {

const suffix = script.id.slice("data".length), get = (id) => document.getElementById(id + suffix);
const data = JSON.parse(script.textContent);
const canvas = get("plane"), pen = canvas.getContext("2d");
const panel = get("panel"), legend = get("legend"), colour = get("colour");
const LAYERS = ["#1b80ac", "#d1495b", "#e0a030", "#4a9a4b", "#9066c4", "#a56e60", "#1fb0b0", "#7d8791"];
const CLASSES = ["#111827", "#f4d35e", "#d1495b", "#1b80ac", "#4a9a4b", "#9066c4", "#e07a30", "#1fb0b0", "#a56e60", "#ffffff"];
const RAMP = [[68, 1, 84], [71, 45, 123], [59, 82, 139], [44, 114, 142], [33, 145, 140], [40, 174, 128], [94, 201, 98], [173, 220, 48], [253, 231, 37]];
const LEVELS = 64, LINES = 8, NEAR = 4, FARTHEST = 1e7, FEW = 12;

function decoded(text, Kind) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Kind(bytes.buffer);
}

// ---- the regions, relative to data.base

const flat = data.dim === 1, count = data.count, step = data.dim + 1;
const given = decoded(data.corners, Float32Array), starts = decoded(data.starts, Uint32Array), borders = decoded(data.borders, Int16Array);
const bits = decoded(data.patterns, Uint8Array), maps = decoded(data.maps, Float32Array), slopes = decoded(data.slopes, Float32Array);
const tiles = decoded(data.tiles, Uint8Array), areas = decoded(data.areas, Float32Array);
const points = decoded(data.points || "", Float32Array), kinds = decoded(data.kinds || "", Uint8Array), classes = data.classes || [];
const boundary = decoded(data.boundary || "", Float32Array);
const relus = data.layers.reduce((sum, units) => sum + units, 0), rowBytes = Math.ceil(relus / 8);

function mapped(region, output, x) { // the value of an output of a network with one input
  const at = (region * data.listed + output) * step;
  return maps[at] * x + maps[at + 1];
}

let first = starts, px = new Float32Array(0), py = new Float32Array(0);
if (flat) { // intervals become strips as high as the graph
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < count; i++) for (let o = 0; o < Math.min(data.listed, LINES); o++) for (const v of [starts[i], starts[i] + 1]) {
    const y = mapped(i, o, given[v]);
    low = Math.min(low, y); high = Math.max(high, y);
  }
  if (!(high > low)) { low -= 1; high += 1; }
  const pad = 0.08 * (high - low);
  first = Uint32Array.from({ length: count + 1 }, (_, i) => 4 * i);
  px = new Float32Array(4 * count); py = new Float32Array(4 * count);
  for (let i = 0; i < count; i++) {
    const left = given[starts[i]], right = given[starts[i] + 1];
    px.set([left, right, right, left], 4 * i);
    py.set([low - pad, low - pad, high + pad, high + pad], 4 * i);
  }
} else {
  px = new Float32Array(given.length / 2); py = new Float32Array(given.length / 2);
  for (let v = 0; v < px.length; v++) { px[v] = given[2 * v]; py[v] = given[2 * v + 1]; }
}
const base = [data.base[0], flat ? 0 : data.base[1]];

const boxes = new Float32Array(4 * count), world = [Infinity, Infinity, -Infinity, -Infinity];
for (let i = 0; i < count; i++) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (let v = first[i]; v < first[i + 1]; v++) {
    box[0] = Math.min(box[0], px[v]); box[1] = Math.min(box[1], py[v]);
    box[2] = Math.max(box[2], px[v]); box[3] = Math.max(box[3], py[v]);
  }
  boxes.set(box, 4 * i);
  for (let k = 0; k < 2; k++) { world[k] = Math.min(world[k], box[k]); world[k + 2] = Math.max(world[k + 2], box[k + 2]); }
}

// a grid of buckets: which regions may hold a point
const side = Math.max(1, Math.min(256, Math.ceil(Math.sqrt(count))));
const cell = [(world[2] - world[0]) / side || 1, (world[3] - world[1]) / side || 1];
const place = (value, axis) => Math.max(0, Math.min(side - 1, Math.floor((value - world[axis]) / cell[axis])));
const heads = new Uint32Array(side * side + 1);
function buckets(i, visit) {
  const right = place(boxes[4 * i + 2], 0), top = place(boxes[4 * i + 3], 1);
  for (let y = place(boxes[4 * i + 1], 1); y <= top; y++) for (let x = place(boxes[4 * i], 0); x <= right; x++) visit(y * side + x);
}
for (let i = 0; i < count; i++) buckets(i, (at) => { heads[at + 1]++; });
for (let at = 0; at < side * side; at++) heads[at + 1] += heads[at];
const members = new Uint32Array(heads[side * side]), filled = heads.slice();
for (let i = 0; i < count; i++) buckets(i, (at) => { members[filled[at]++] = i; });

function depth(i, x, y) { // how far inside of a convex polygon, from its nearest side; negative outside
  let least = Infinity;
  for (let v = first[i], w = first[i + 1] - 1; v < first[i + 1]; w = v++) {
    const dx = px[v] - px[w], dy = py[v] - py[w], size = Math.hypot(dx, dy);
    if (size > 0) least = Math.min(least, (dx * (y - py[w]) - dy * (x - px[w])) / size);
  }
  return least;
}

function find(x, y) { // the region at a point; -1 if there is none
  if (x < world[0] || x > world[2] || y < world[1] || y > world[3]) return -1;
  const at = place(y, 1) * side + place(x, 0), slack = 1e-6 * (world[2] - world[0] + world[3] - world[1]);
  let best = -1, deepest = -slack;
  for (let k = heads[at]; k < heads[at + 1]; k++) {
    const inside = depth(members[k], x, y);
    if (inside > deepest) { deepest = inside; best = members[k]; }
  }
  return best;
}

// ---- the view

let view = { x: 0, y: 0, sx: 1, sy: 1 }, width = 0, height = 0;
let hovered = -1, pinned = -1, cursor = null, drawn = false;
const FILLED = 0.95; // part of the drawing that the whole fills
const EDGE = 8, BELOW = 42, TITLE = 20; // pixels: above and right of the drawing, below it, and for what the axis on the left is called

function fit() {
  const upward = height - EDGE - BELOW, middle = [(world[0] + world[2]) / 2, (world[1] + world[3]) / 2];
  let left = 0, tall = world[3] - world[1], sx = 1, sy = 1;
  for (let pass = 0; pass < 2; pass++) { // what is seen decides how wide the numbers beside it are, and these how much is seen
    left = gutter(base[1] + middle[1] - tall / 2, base[1] + middle[1] + tall / 2, upward);
    sx = FILLED * (width - EDGE - left) / (world[2] - world[0]); sy = FILLED * upward / (world[3] - world[1]);
    if (!flat && sx / sy <= 5 && sy / sx <= 5) sx = sy = Math.min(sx, sy);
    tall = upward / sy;
  }
  view = { x: middle[0] - (left - EDGE) / 2 / sx, y: middle[1] - (BELOW - EDGE) / 2 / sy, sx, sy };
  whole = view.sx;
  untouched = true;
  refresh();
}
let untouched = true; // the whole is shown, also in a window of another size
let whole = 1;
const toX = (x) => width / 2 + (x - view.x) * view.sx, toY = (y) => height / 2 - (y - view.y) * view.sy;
const fromX = (x) => view.x + (x - width / 2) / view.sx, fromY = (y) => view.y - (y - height / 2) / view.sy;

function zoom(factor, x = width / 2, y = height / 2) {
  const by = Math.max(0.5 * whole, Math.min(FARTHEST * whole, view.sx * factor)) / view.sx;
  const held = [fromX(x), fromY(y)];
  untouched = false;
  view.sx *= by; view.sy *= by;
  view.x += held[0] - fromX(x); view.y += held[1] - fromY(y);
  refresh();
}

function pan(dx, dy) {
  untouched = false;
  view.x = Math.max(world[0], Math.min(world[2], view.x - dx / view.sx));
  view.y = Math.max(world[1], Math.min(world[3], view.y + dy / view.sy));
  refresh();
}

function refresh() {
  if (drawn) return;
  drawn = true;
  requestAnimationFrame(() => { drawn = false; draw(); });
}

// ---- drawing

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const ramp = (share) => {
  const place = share * (RAMP.length - 1), i = Math.min(RAMP.length - 2, Math.floor(place));
  return `rgb(${RAMP[i].map((part, k) => Math.round(part + (place - i) * (RAMP[i + 1][k] - part))).join(",")})`;
};
let flattest = Infinity, steepest = -Infinity;
for (const slope of slopes) { flattest = Math.min(flattest, slope); steepest = Math.max(steepest, slope); }
const level = (i) => Math.min(LEVELS - 1, Math.floor(LEVELS * (slopes[i] - flattest) / (steepest - flattest || 1)));

function outline(i) {
  for (let v = first[i]; v < first[i + 1]; v++) pen[v === first[i] ? "moveTo" : "lineTo"](toX(px[v]), toY(py[v]));
  pen.closePath();
}

function visible() {
  const left = fromX(0), right = fromX(width), bottom = fromY(height), top = fromY(0), seen = [];
  for (let i = 0; i < count; i++) {
    if (boxes[4 * i] <= right && boxes[4 * i + 2] >= left && boxes[4 * i + 1] <= top && boxes[4 * i + 3] >= bottom) seen.push(i);
  }
  return seen;
}

function fill(seen, classes, paint) {
  const groups = new Map();
  for (const i of seen) {
    const key = classes(i);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(i);
  }
  for (const [key, group] of groups) {
    pen.fillStyle = pen.strokeStyle = paint(key);
    pen.lineWidth = 0.6; // hides the seams between neighbours
    pen.beginPath();
    group.forEach(outline);
    pen.fill();
    pen.stroke();
  }
}

function walls(seen) {
  pen.fillStyle = style("--card");
  pen.beginPath();
  seen.forEach(outline);
  pen.fill();
  pen.lineWidth = seen.length > 5000 ? 0.6 : 1.2;
  for (let layer = data.layers.length - 1; layer >= 0; layer--) {
    pen.strokeStyle = LAYERS[layer % LAYERS.length];
    pen.beginPath();
    for (const i of seen) {
      const corners = first[i + 1] - first[i];
      for (let k = 0; k < corners; k++) {
        // on a line the border of an end is that of its strip's side: left is the fourth side, right the second
        const border = flat ? (k === 3 ? borders[starts[i]] : k === 1 ? borders[starts[i] + 1] : -1) : borders[first[i] + k];
        if (border !== layer) continue;
        const v = first[i] + k, w = first[i] + (k + 1) % corners;
        pen.moveTo(toX(px[v]), toY(py[v]));
        pen.lineTo(toX(px[w]), toY(py[w]));
      }
    }
    pen.stroke();
  }
}

function graph(seen) {
  pen.lineWidth = 2;
  for (let output = 0; output < Math.min(data.listed, LINES); output++) {
    pen.strokeStyle = data.listed > 1 ? LAYERS[output % LAYERS.length] : style("--ink");
    pen.beginPath();
    for (const i of seen) {
      const left = given[starts[i]], right = given[starts[i] + 1];
      pen.moveTo(toX(left), toY(mapped(i, output, left)));
      pen.lineTo(toX(right), toY(mapped(i, output, right)));
    }
    pen.stroke();
  }
}

function ticks(low, high, most) { // all multiples of a round number, at most so many; and with how many digits they are written
  const rough = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough * (1 - 1e-9)), found = [];
  for (let k = Math.ceil(low / size - 1e-9); k * size <= high + 1e-9 * size && found.length < 50; k++) found.push(k * size);
  const places = Math.min(12, Math.max(0, -Math.floor(Math.log10(size) + 1e-9)));
  return found.map((value) => [value, (Math.abs(value) < size / 2 ? 0 : value).toFixed(places).replace("-", "\u2212")]);
}

const FONT = "11px system-ui, sans-serif", TALL = 28; // pixels from one number to the next one above it
const upwards = (low, high, room) => ticks(low, high, Math.min(12, room / TALL));
function widest(numbers) {
  pen.font = FONT;
  return Math.max(0, ...numbers.map(([, text]) => pen.measureText(text).width));
}
function gutter(low, high, room) { // how wide numbers and title beside the drawing are
  return Math.min(0.4 * width, TITLE + 10 + widest(upwards(low, high, room)));
}

function area() { // where regions are drawn: what is left of the canvas beside the scales
  const bottom = height - BELOW;
  const left = gutter(base[1] + fromY(bottom), base[1] + fromY(EDGE), bottom - EDGE);
  return { left, right: width - EDGE, top: EDGE, bottom };
}

function scales(frame) {
  const low = base[0] + fromX(frame.left), high = base[0] + fromX(frame.right), room = frame.right - frame.left;
  let across = ticks(low, high, Math.min(10, room / 40));
  for (let most = 9; most > 1 && across.length * (widest(across) + 14) > room; most--) across = ticks(low, high, most);
  const upward = upwards(base[1] + fromY(frame.bottom), base[1] + fromY(frame.top), frame.bottom - frame.top);
  pen.font = FONT;
  pen.lineWidth = 1;
  pen.strokeStyle = style("--soft");
  pen.fillStyle = style("--ink");
  pen.strokeRect(frame.left, frame.top, room, frame.bottom - frame.top);
  pen.beginPath();
  pen.textAlign = "center"; pen.textBaseline = "top";
  for (const [value, text] of across) {
    const x = toX(value - base[0]), half = pen.measureText(text).width / 2;
    pen.moveTo(x, frame.bottom); pen.lineTo(x, frame.bottom + 4);
    pen.fillText(text, Math.max(half, Math.min(width - half - 1, x)), frame.bottom + 6);
  }
  pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const [value, text] of upward) {
    const y = toY(value - base[1]);
    pen.moveTo(frame.left - 4, y); pen.lineTo(frame.left, y);
    pen.fillText(text, frame.left - 6, y);
  }
  pen.stroke();
  pen.fillStyle = style("--soft");
  pen.textAlign = "center"; pen.textBaseline = "bottom";
  pen.fillText(titles[0], (frame.left + frame.right) / 2, height - 2);
  pen.save();
  pen.translate(2, (frame.top + frame.bottom) / 2);
  pen.rotate(-Math.PI / 2);
  pen.textBaseline = "top";
  pen.fillText(titles[1], 0, 0);
  pen.restore();
}
const titles = flat ? [`s, ${data.names[0]}`, data.outputs > 1 ? "outputs" : "output"] : data.names.map((name, axis) => `${["s", "t"][axis]}, ${name}`);

function decision() { // where the network's decision changes
  const ink = [["--card", 4.5], ["--ink", 2]];
  for (const [name, thick] of ink) {
    pen.strokeStyle = style(name);
    pen.lineWidth = thick;
    pen.beginPath();
    if (flat) for (const x of boundary) { pen.moveTo(toX(x), 0); pen.lineTo(toX(x), height); }
    else for (let i = 0; i < boundary.length; i += 4) {
      pen.moveTo(toX(boundary[i]), toY(boundary[i + 1]));
      pen.lineTo(toX(boundary[i + 2]), toY(boundary[i + 3]));
    }
    pen.stroke();
  }
}

const kind = (i) => (classes.length ? CLASSES[kinds[i] % CLASSES.length] : style("--ink"));
function examples(frame) { // dots, with their classes beside them if they are few
  const each = flat ? 1 : 2, many = points.length / each, size = many <= FEW ? 5 : many <= 400 ? 3.2 : 2.2;
  pen.font = "bold 12px system-ui, sans-serif";
  pen.textAlign = "left"; pen.textBaseline = "bottom";
  for (let i = 0; i < many; i++) {
    const x = toX(points[each * i]), y = flat ? frame.bottom - 8 : toY(points[2 * i + 1]);
    pen.beginPath();
    pen.arc(x, y, size, 0, 2 * Math.PI);
    pen.fillStyle = kind(i); pen.strokeStyle = style("--card"); pen.lineWidth = size > 3 ? 1.5 : 0.8;
    pen.fill(); pen.stroke();
    if (many > FEW || !classes.length) continue;
    pen.lineWidth = 3; pen.strokeStyle = style("--card"); pen.fillStyle = style("--ink");
    pen.strokeText(classes[kinds[i]], x + 7, y - 4);
    pen.fillText(classes[kinds[i]], x + 7, y - 4);
  }
}

function mark(region, ink, thick) {
  if (region < 0) return;
  pen.strokeStyle = ink;
  pen.lineWidth = thick;
  pen.lineJoin = "round";
  pen.beginPath();
  outline(region);
  pen.stroke();
}

function draw() {
  if (!width) return;
  const ratio = window.devicePixelRatio || 1;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const seen = visible(), frame = area();
  pen.save();
  pen.beginPath();
  pen.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
  pen.clip();
  if (colour.value === "layer") walls(seen);
  else if (colour.value === "slope") fill(seen, level, (key) => ramp(key / (LEVELS - 1)));
  else fill(seen, (i) => tiles[i], (key) => data.palette[key]);
  if (flat) graph(seen);
  mark(hovered, style("--ink"), 2);
  if (boundary.length) decision();
  examples(frame);
  mark(pinned, style("--estimate"), 3.5);
  if (cursor) {
    const x = toX(cursor[0]), y = toY(cursor[1]);
    pen.strokeStyle = style("--ink"); pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x - 9, y); pen.lineTo(x + 9, y); pen.moveTo(x, y - 9); pen.lineTo(x, y + 9);
    pen.stroke();
  }
  pen.restore();
  scales(frame);
}

function explain() { // the legend
  legend.replaceChildren();
  const add = (text, background, kind = "") => {
    const item = document.createElement("span"), swatch = document.createElement("i");
    swatch.style.background = background; swatch.className = kind;
    item.append(swatch, text);
    legend.append(item);
  };
  if (colour.value === "layer") data.layers.forEach((_, i) => add(`cut by layer ${i + 1}`, LAYERS[i % LAYERS.length]));
  else if (colour.value === "slope") {
    const stops = RAMP.map((part) => `rgb(${part.join(",")})`).join(",");
    add(`norm of the derivatives: ${short(flattest)} to ${short(steepest)}`, `linear-gradient(90deg, ${stops})`, "ramp");
  } else legend.append("A colour for each pattern; neighbours differ.");
  if (boundary.length) add("the decision changes", "var(--ink)");
  if (classes.length) classes.forEach((name, i) => add(`class ${name}`, CLASSES[i % CLASSES.length], "dot"));
  else if (points.length) add("points given", "var(--ink)", "dot");
  if (flat && data.listed > 1) for (let o = 0; o < Math.min(data.listed, LINES); o++) add(`output ${o}`, LAYERS[o % LAYERS.length]);
}

// ---- what is said of a region

const short = (value, digits = 4) => (Math.abs(value) < 5e-7 ? "0" : Number(value.toPrecision(digits)).toString()).replace("-", "−");
function pattern(region) {
  let text = "";
  for (let unit = 0; unit < relus; unit++) text += bits[region * rowBytes + (unit >> 3)] >> (7 - (unit & 7)) & 1;
  return text;
}

function element(tag, text = "", kind = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function affine(region) {
  const lines = [], wide = String(data.listed - 1).length;
  for (let output = 0; output < data.listed; output++) {
    const at = (region * data.listed + output) * step;
    let constant = maps[at + data.dim], text = `y${String(output).padEnd(wide)} =`;
    for (let axis = 0; axis < data.dim; axis++) {
      constant -= maps[at + axis] * data.base[axis];
      text += ` ${`${signed(maps[at + axis])} ${["s", "t"][axis]}`.padEnd(11)}`;
    }
    lines.push(`${text} ${signed(constant)}`);
  }
  if (data.outputs > data.listed) lines.push(`and ${data.outputs - data.listed} more`);
  return lines.join("\n");
}
const signed = (value) => (value < 0 ? "−" : "+") + short(Math.abs(value), 3);

const changing = (() => { // of each layer, how many ReLUs have both states on the picture
  const any = new Uint8Array(rowBytes), all = new Uint8Array(rowBytes).fill(255), found = [];
  for (let i = 0; i < count; i++) for (let k = 0; k < rowBytes; k++) { any[k] |= bits[i * rowBytes + k]; all[k] &= bits[i * rowBytes + k]; }
  const both = (unit) => (any[unit >> 3] & ~all[unit >> 3]) >> (7 - (unit & 7)) & 1;
  let unit = 0;
  for (const units of data.layers) {
    let sum = 0;
    for (const end = unit + units; unit < end; unit++) sum += both(unit);
    found.push(sum);
  }
  return found;
})();

function overview() { // what is said before anybody points
  const sorted = Float32Array.from(areas).sort(), total = sorted.reduce((sum, size) => sum + size, 0);
  const share = (size) => `${short(100 * size / total, 2)} %`, measure = flat ? "length" : "area";
  let half = 0, largest = 0;
  for (let i = count - 1; i >= 0 && half < total / 2; i--) { half += sorted[i]; largest++; }
  panel.append(element("h3", count === 1 ? "One region" : `All ${count.toLocaleString("en")} regions shown`));
  const lines = [`The largest has ${share(sorted[count - 1])} of the ${measure}, the median ${share(sorted[count >> 1])}.`];
  if (largest > 1) lines.push(`The largest ${largest.toLocaleString("en")} make up half of it.`);
  lines.push(`The slope lies between ${short(flattest)} and ${short(steepest)}.`);
  for (const line of lines) panel.append(element("p", line));
  panel.append(element("h4", "ReLUs that change their state here"));
  data.layers.forEach((units, layer) => panel.append(element("p", `layer ${layer + 1}: ${changing[layer].toLocaleString("en")} of ${units.toLocaleString("en")}`)));
  panel.append(element("p", "Point at a region for its pattern and its affine map; click to keep it here.", "small"));
}

function show(region, at) {
  panel.replaceChildren();
  panel.classList.toggle("pinned", pinned >= 0);
  if (region < 0) {
    delete panel.dataset.region; delete panel.dataset.pattern;
    overview();
    return;
  }
  const states = pattern(region);
  panel.dataset.region = region;
  panel.dataset.pattern = states;
  panel.append(element("h3", `Region ${(region + 1).toLocaleString("en")} of ${count.toLocaleString("en")}${pinned >= 0 ? ", pinned" : ""}`));
  if (at) panel.append(element("p", at.slice(0, data.dim).map((value, axis) => `${["s", "t"][axis]} = ${short(value + base[axis])}`).join(", "), "small"));
  panel.append(element("p", data.names.map((name, axis) => `${["s", "t"][axis]} is ${name}`).join(", "), "small"));
  const key = element("p", "", "small bits key-of-bits");
  key.append(element("i", "", "up"), "active unit", element("i"), "inactive unit");
  if (relus) panel.append(key);
  let begin = 0;
  data.layers.forEach((units, layer) => {
    const own = states.slice(begin, begin + units), active = own.split("1").length - 1, row = element("div", "", "bits");
    panel.append(element("h4", `layer ${layer + 1}: ${active} of ${units} active`));
    for (const state of own) row.append(element("i", "", state === "1" ? "up" : ""));
    row.setAttribute("role", "img");
    row.setAttribute("aria-label", units <= 64 ? own : `${active} of ${units} active`);
    panel.append(row);
    begin += units;
  });
  panel.append(element("h4", "affine map here"), element("div", affine(region), "maps"));
  panel.append(element("p", `slope ${short(slopes[region])}`, "small"));
}

let lastAt = null;
function look(x, y) { // at a point of the plane
  const region = find(x, y);
  lastAt = [x, y];
  if (region !== hovered) { hovered = region; refresh(); }
  if (pinned < 0) show(region, region < 0 ? null : lastAt);
}

function pin(region) {
  pinned = region === pinned ? -1 : region;
  show(pinned < 0 ? hovered : pinned, lastAt);
  refresh();
}

// ---- hands

const pointers = new Map();
let moved = 0;
const local = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, local(event));
  moved = 0;
  cursor = null;
});
canvas.addEventListener("pointermove", (event) => {
  const now = local(event), before = pointers.get(event.pointerId);
  if (before) {
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, where]) => where);
      const span = (where) => Math.max(8, Math.hypot(where[0] - other[0], where[1] - other[1]));
      zoom(span(now) / span(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else if (moved > NEAR) pan(now[0] - before[0], now[1] - before[1]);
    pointers.set(event.pointerId, now);
  }
  if (!before || moved <= NEAR) look(fromX(now[0]), fromY(now[1]));
});
function lift(event) {
  const click = pointers.size === 1 && moved <= NEAR && event.type === "pointerup";
  pointers.delete(event.pointerId);
  if (click) {
    const [x, y] = local(event);
    look(fromX(x), fromY(y));
    pin(hovered);
  }
}
canvas.addEventListener("pointerup", lift);
canvas.addEventListener("pointercancel", lift);
canvas.addEventListener("pointerleave", () => {
  if (cursor || pointers.size) return;
  hovered = -1;
  if (pinned < 0) show(-1);
  refresh();
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...local(event));
}, { passive: false });
canvas.addEventListener("dblclick", (event) => event.preventDefault());

canvas.addEventListener("keydown", (event) => {
  const far = event.shiftKey ? 60 : 12, steps = { ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, -far], ArrowDown: [0, far] };
  if (steps[event.key]) {
    cursor ||= [view.x, view.y];
    const x = toX(cursor[0]) + steps[event.key][0], y = toY(cursor[1]) + steps[event.key][1];
    cursor = [Math.max(world[0], Math.min(world[2], fromX(x))), Math.max(world[1], Math.min(world[3], fromY(y)))];
    if (toX(cursor[0]) < 0 || toX(cursor[0]) > width || toY(cursor[1]) < 0 || toY(cursor[1]) > height) pan(-steps[event.key][0], -steps[event.key][1]);
    look(...cursor);
    refresh();
  } else if (event.key === "+" || event.key === "=") zoom(1.3, ...(cursor ? [toX(cursor[0]), toY(cursor[1])] : []));
  else if (event.key === "-" || event.key === "_") zoom(1 / 1.3);
  else if (event.key === "0") fit();
  else if (event.key === "Enter" || event.key === " ") pin(hovered);
  else if (event.key === "Escape") { pinned = -1; show(hovered, lastAt); refresh(); }
  else return;
  event.preventDefault();
});

get("closer").addEventListener("click", () => zoom(1.5));
get("farther").addEventListener("click", () => zoom(1 / 1.5));
get("whole").addEventListener("click", fit);
colour.addEventListener("change", () => { explain(); refresh(); });
addEventListener("themechange", refresh);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);

new ResizeObserver(() => {
  const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1, fresh = !width, before = width;
  if (!box.width || (box.width === width && box.height === height)) return;
  width = box.width; height = box.height;
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  if (fresh || untouched) fit();
  else { view.sx *= width / before; view.sy *= width / before; whole *= width / before; refresh(); }
}).observe(canvas);
explain();
show(-1);

// ---- tabs, if there are data: without JavaScript all is shown

const tabs = get("tabs");
if (tabs) {
  const buttons = [...tabs.querySelectorAll("button")], shown = (button) => document.getElementById(button.getAttribute("aria-controls"));
  const choose = (chosen) => buttons.forEach((button) => {
    button.setAttribute("aria-selected", button === chosen);
    button.tabIndex = button === chosen ? 0 : -1;
    shown(button).hidden = button !== chosen;
  });
  tabs.setAttribute("role", "tablist");
  buttons.forEach((button, number) => {
    button.setAttribute("role", "tab");
    button.id = `tab-of-${button.getAttribute("aria-controls")}`;
    shown(button).setAttribute("role", "tabpanel");
    shown(button).setAttribute("aria-labelledby", button.id);
    button.addEventListener("click", () => choose(button));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = buttons[(number + step + buttons.length) % buttons.length];
      choose(next);
      next.focus();
      event.preventDefault();
    });
  });
  tabs.hidden = false;
  choose(buttons[0]);
}

// for tests and for the curious: regions by coordinates, and where coordinates are on the screen
if (!suffix) window.explorer = {
  find: (x, y) => find(x - base[0], y - base[1]),
  pattern,
  project: (x, y) => { const box = canvas.getBoundingClientRect(); return [box.left + toX(x - base[0]), box.top + toY(y - base[1])]; },
  view: () => ({ ...view, width, height }),
};
})();

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = (root.dataset.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  dispatchEvent(new Event("themechange"));
});
