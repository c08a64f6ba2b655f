(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("fleet-data").textContent);
  const layer = document.getElementById("fleet-layer");
  const slider = document.getElementById("fleet-time");
  const clock = document.getElementById("fleet-clock");
  // Fields of a state.
  const [TIME, CLASS, LETTER, TEXT] = [0, 1, 2, 3];
  const VALUE = { goodput: 4, added: 5, rtt: 6, loss: 7 };
  const GOODPUT_TEXT = 8;

  const latest = (states, time, has) => {
    for (let index = states.length - 1; index >= 0; index -= 1) {
      if (states[index][TIME] <= time && has(states[index])) return states[index];
    }
    return null;
  };

  const short = {
    goodput: (value, state) => state[GOODPUT_TEXT],
    added: (value) => `${value.toPrecision(3)} ms`,
    rtt: (value) => `${value.toPrecision(3)} ms`,
    loss: (value) => `${(100 * value).toPrecision(3)} %`,
  };

  // Dark is more, in equal steps of the logarithm; loss is linear below one percent.
  const shades = (kind, time) => {
    const field = VALUE[kind];
    const values = data.cells.map((cell) => latest(cell.states, time, (state) => state[field] !== null)?.[field]).filter((value) => value > 0);
    const low = Math.log(Math.min(...values)), high = Math.log(Math.max(...values));
    return (value) => (value > 0 && high > low ? (Math.log(value) - low) / (high - low) : value > 0 ? 1 : 0);
  };

  const draw = () => {
    const time = Number(slider.value), kind = layer.value;
    const shade = kind === "cause" ? null : shades(kind, time);
    for (const { from, to, states } of data.cells) {
      const cell = document.getElementById(`cell-${from}-${to}`);
      if (!cell) continue;
      const field = VALUE[kind];
      const state = latest(states, time, (one) => (shade ? one[field] !== null : one[CLASS] !== null));
      const names = `${data.hosts[from]} → ${data.hosts[to]}`;
      cell.className = `cell ${state ? (shade ? "c-value" : state[CLASS]) : "c-none"}`;
      cell.textContent = state && !shade ? state[LETTER] : "";
      cell.style.background = state && shade ? `color-mix(in srgb, #143f6b ${Math.round(15 + 85 * shade(state[field]))}%, #d7e6f5)` : "";
      cell.title = state ? `${names}: ${shade ? short[kind](state[field], state) : state[TEXT]}` : `${names}: not measured`;
    }
    clock.textContent = data.times[time] ?? "";
  };

  const open = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };

  slider.max = Math.max(0, data.times.length - 1);
  slider.value = slider.max;
  document.querySelector(".controls").hidden = false;
  slider.addEventListener("input", draw);
  layer.addEventListener("change", draw);
  addEventListener("hashchange", open);
  open();
  draw();
})();
