for (const svg of document.querySelectorAll("svg.zoom")) {
  const whole = svg.viewBox.baseVal, start = [whole.x, whole.y, whole.width, whole.height];
  let box = start.slice(), held = null;
  const show = () => svg.setAttribute("viewBox", box.join(" "));
  const at = (event) => {
    const area = svg.getBoundingClientRect(), scale = Math.max(box[2] / area.width, box[3] / area.height);
    return [box[0] + box[2] / 2 + (event.clientX - area.left - area.width / 2) * scale,
      box[1] + box[3] / 2 + (event.clientY - area.top - area.height / 2) * scale];
  };
  const zoom = (by, [x, y]) => {
    if (box[2] / by > start[2] || box[2] / by < start[2] / 400) { if (by < 1) box = start.slice(); show(); return; }
    box = [x - (x - box[0]) / by, y - (y - box[1]) / by, box[2] / by, box[3] / by];
    show();
  };
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, at(event));
  }, { passive: false });
  svg.addEventListener("pointerdown", (event) => { held = at(event); svg.setPointerCapture(event.pointerId); });
  svg.addEventListener("pointerup", () => { held = null; });
  svg.addEventListener("pointermove", (event) => {
    if (!held) return;
    const [x, y] = at(event);
    box[0] += held[0] - x; box[1] += held[1] - y;
    show();
  });
  for (const button of svg.parentElement.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const by = Number(button.dataset.zoom);
      if (!by) { box = start.slice(); show(); } else zoom(by, [box[0] + box[2] / 2, box[1] + box[3] / 2]);
    });
  }
}
