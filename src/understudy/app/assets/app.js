// What the pages do beyond HTMX: sliders on a logarithmic scale, marks at fields, progress of a run, dropped releases.
"use strict";

function slide(slider) {
  const field = document.getElementById(slider.dataset.for);
  const low = Math.log(Number(slider.dataset.low)), high = Math.log(Number(slider.dataset.high));
  const told = () => slider.setAttribute("aria-valuetext", field.value);
  const follow = () => {
    const value = Number(field.value);
    if (value > 0) slider.value = String((100 * (Math.log(value) - low)) / (high - low));
    told();
  };
  slider.addEventListener("input", () => {
    field.value = Number(Math.exp(low + ((high - low) * Number(slider.value)) / 100).toPrecision(2));
    told();
  });
  field.addEventListener("input", follow);
  follow();
}

function markFields() {
  const found = document.querySelector("[data-problem]");
  const key = found ? found.dataset.problem : "";
  for (const field of document.querySelectorAll("[data-key]")) {
    const name = field.dataset.key;
    const wrong = key !== "" && (key === name || key.split(".").includes(name) || key.startsWith(name + "."));
    field.classList.toggle("wrong", wrong);
    for (const input of field.querySelectorAll("input:not([type=hidden]), select, textarea")) input.setAttribute("aria-invalid", String(wrong));
  }
}

function listen(standing) {
  const events = new EventSource(standing.dataset.events);
  events.addEventListener("standing", (message) => {
    const facts = JSON.parse(message.data);
    const focused = standing.contains(document.activeElement) && document.activeElement.tagName;
    const open = standing.querySelector("details")?.open;
    standing.innerHTML = facts.html;
    if (open) standing.querySelector("details").open = true;
    if (focused) standing.querySelector(focused.toLowerCase())?.focus();
    if (facts.state === "running") return;
    events.close();
    document.getElementById("said").textContent = standing.querySelector(".verdict").textContent;
  });
}

async function send(form, files) {
  const status = document.getElementById("drop-status");
  const token = form.querySelector("[name=form_token]").value;
  for (const file of files) {
    status.textContent = `Reading ${file.name}…`;
    const query = new URLSearchParams({ dropped: form.dataset.batch, name: file.name });
    const answer = await fetch(`/verify/drop?${query}`, { method: "POST", body: file, headers: { "X-Form-Token": token } });
    if (!answer.ok) { status.textContent = `${file.name} was not taken.`; return; }
  }
  form.querySelector("[name=dropped]").value = form.dataset.batch;
  status.textContent = `${files.length} files are ready to be verified.`;
}

async function filesOf(entry) {
  if (entry.isFile) return [await new Promise((take, refuse) => entry.file(take, refuse))];
  const entries = await new Promise((take, refuse) => entry.createReader().readEntries(take, refuse));
  return (await Promise.all(entries.map(filesOf))).flat();
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".slider").forEach(slide);
  markFields();
  const standing = document.querySelector("[data-events]");
  if (standing) listen(standing);
  const drop = document.getElementById("drop");
  if (!drop) return;
  const zone = drop.querySelector(".dropzone");
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    await send(drop, (await Promise.all(entries.map(filesOf))).flat());
  });
  drop.querySelector("input[type=file]").addEventListener("change", (event) => send(drop, [...event.target.files]));
});
document.addEventListener("htmx:afterSwap", markFields);
