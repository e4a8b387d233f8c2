"use strict";
// Zoom of a figure's horizontal axis, or of a plane of points: drag over a stretch, or use the buttons below the figure.
// A double click shows all again. Places are in units of the drawing; `view` holds the shown part as shares of the whole.
const NAMESPACE = "http://www.w3.org/2000/svg";
const STEPS = [1 / 1440, 5 / 1440, 15 / 1440, 1 / 24, 3 / 24, 6 / 24, 12 / 24, 1, 2, 7, 14, 28, 91, 182, 365]; // days
const MOST_TICKS = 5, CLOSEST = 1 / 500, DRAGGED = 6;

function element(parent, tag, attributes, text = "") {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return parent.appendChild(made);
}

function spacing(width, calendar) {
  const least = width / MOST_TICKS;
  if (calendar && least <= STEPS.at(-1)) return STEPS.find((step) => step >= least);
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((part) => power * part >= least);
}

function label(value, step, calendar) {
  if (!calendar) return value.toFixed(Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9)))).replace("-", "−");
  const date = new Date(Math.round(value * 1440) * 60000); // local times of the table, kept as if they were UTC
  const time = date.toISOString().slice(11, 16);
  if (step < 1 && time !== "00:00") return time;
  return date.toLocaleDateString("en-GB", { day: "2-digit", month: "short", timeZone: "UTC" });
}

class Zoom {
  constructor(svg) {
    this.svg = svg;
    [this.left, this.top, this.right, this.bottom] = svg.dataset.box.split(" ").map(Number);
    [this.low, this.high] = svg.dataset.domain.split(" ").map(Number);
    this.calendar = "calendar" in svg.dataset;
    this.plane = "plane" in svg.dataset;
    const marks = this.plane ? [...svg.querySelectorAll("[clip-path] use")] : [];
    this.points = marks.map((use) => [use, +use.getAttribute("x"), +use.getAttribute("y")]);
    this.moved = this.plane ? [] : this.wrapped();
    this.ticks = element(svg, "g", { class: "zoom-ticks" });
    this.selection = element(svg, "rect", { class: "zoom-selection", visibility: "hidden" });
    this.buttons();
    svg.addEventListener("pointerdown", (event) => this.begin(event));
    svg.addEventListener("dblclick", () => this.show());
    this.show();
  }

  wrapped() { // the clip must stay where it is while what it clips is stretched
    const clip = this.svg.querySelector("[clip-path]").getAttribute("clip-path");
    return [...this.svg.querySelectorAll("[clip-path], .hit rect, .hit path")].map((shape) => {
      const group = document.createElementNS(NAMESPACE, "g");
      group.setAttribute("clip-path", clip);
      shape.replaceWith(group);
      group.append(shape);
      shape.removeAttribute("clip-path");
      return shape;
    });
  }

  buttons() {
    const figure = this.svg.closest("figure"), name = figure.querySelector("figcaption").firstChild.textContent.trim();
    const bar = figure.insertBefore(document.createElement("div"), this.svg.nextSibling);
    bar.className = "zoom-bar";
    const half = (share) => this.show(...this.view.map(([from, to]) => {
      const middle = (from + to) / 2, reach = ((to - from) * share) / 2;
      return [middle - reach, middle + reach];
    }));
    const move = (share) => this.show(this.view[0].map((end, _, [from, to]) => end + share * (to - from)), this.view[1]);
    const made = [["Zoom in", () => half(0.5)], ["Zoom out", () => half(2)], ["Earlier", () => move(-0.5)], ["Later", () => move(0.5)], ["Show all", () => this.show()]];
    this.bar = made.filter(([what]) => !this.plane || !/er$/.test(what)).map(([what, act]) => {
      const button = bar.appendChild(document.createElement("button"));
      const said = this.calendar ? what : what.replace("Earlier", "Left").replace("Later", "Right");
      [button.type, button.textContent] = ["button", said];
      button.setAttribute("aria-label", `${said}: ${name}`);
      button.addEventListener("click", act);
      return button;
    });
  }

  show(across = [0, 1], up = [0, 1]) {
    this.view = [across, this.plane ? up : [0, 1]].map(([from, to]) => {
      const width = Math.min(1, Math.max(CLOSEST, to - from)), start = Math.min(1 - width, Math.max(0, from));
      return [start, start + width];
    });
    const whole = this.view.every(([from, to]) => to - from > 0.9999);
    this.svg.classList.toggle("zoomed", !whole);
    this.bar.forEach((button, place) => { button.hidden = whole && place > 0; });
    const [[from, to], [down, high]] = this.view, width = this.right - this.left, height = this.bottom - this.top;
    const [across_, up_] = [1 / (to - from), 1 / (high - down)];
    for (const shape of this.moved) {
      shape.setAttribute("vector-effect", "non-scaling-stroke");
      shape.setAttribute("transform", `matrix(${across_} 0 0 1 ${this.left - across_ * (this.left + from * width)} 0)`);
    }
    for (const [use, x, y] of this.points) {
      use.setAttribute("x", this.left + (x - this.left - from * width) * across_);
      use.setAttribute("y", this.top + (y - this.top - down * height) * up_);
    }
    this.ticks.replaceChildren();
    if (!whole && !this.plane) this.label(this.low + from * (this.high - this.low), this.low + to * (this.high - this.low));
  }

  label(low, high) {
    const step = spacing(high - low, this.calendar);
    for (let place = Math.ceil(low / step - 1e-9); place * step <= high + 1e-9 * step; place++) {
      const x = this.left + ((place * step - low) / (high - low)) * (this.right - this.left);
      element(this.ticks, "path", { d: `M${x} ${this.bottom}v3` });
      element(this.ticks, "text", { x, y: this.bottom + 16.2 }, label(place * step, step, this.calendar));
    }
  }

  begin(event) {
    if (event.button) return;
    const at = (moved) => {
      const point = new DOMPoint(moved.clientX, moved.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      return [Math.min(this.right, Math.max(this.left, point.x)), Math.min(this.bottom, Math.max(this.top, point.y))];
    };
    const start = at(event);
    const span = (moved) => start.map((from, axis) => [from, at(moved)[axis]].sort((a, b) => a - b));
    const drag = (moved) => {
      const [[x0, x1], [y0, y1]] = span(moved), [top, bottom] = this.plane ? [y0, y1] : [this.top, this.bottom];
      const size = { x: x0, y: top, width: x1 - x0, height: bottom - top, visibility: "visible" };
      for (const [name, value] of Object.entries(size)) this.selection.setAttribute(name, value);
    };
    const end = (moved) => {
      removeEventListener("pointermove", drag);
      this.selection.setAttribute("visibility", "hidden");
      if (moved.type !== "pointerup") return;
      const found = span(moved), [across, up] = this.view;
      if (found[0][1] - found[0][0] < DRAGGED || (this.plane && found[1][1] - found[1][0] < DRAGGED)) return;
      const share = ([from, to], [first, last], begin, size) => [from, to].map((end) => first + ((end - begin) / size) * (last - first));
      this.show(share(found[0], across, this.left, this.right - this.left), share(found[1], up, this.top, this.bottom - this.top));
    };
    addEventListener("pointermove", drag);
    for (const last of ["pointerup", "pointercancel"]) addEventListener(last, end, { once: true });
    event.preventDefault();
  }
}

document.querySelectorAll("svg[data-box]").forEach((svg) => new Zoom(svg));
