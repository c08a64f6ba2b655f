// The page: starts the measurement, draws it, and explains its result. All texts are set as text, never as markup.
"use strict";

const byId = (id) => document.getElementById(id);
const data = { rates: { down: [], up: [] }, pings: [], phases: [], samples: [], end: 0, summary: "" };
const PHASE_NAMES = { idle: "idle", down: "download", up: "upload" };
const PHASE_STATUS = {
  idle: "Measuring the round trip of the idle path …",
  down: "Measuring the download …",
  up: "Measuring the upload …",
};

let worker = null;
let run = null;
let drawing = false;

function show(id, text) {
  byId(id).textContent = text;
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.ceil(sorted.length / 2) - 1];
}

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    data.summary = summary();
    drawGraph(byId("graph"), data);
  });
}

function summary() {
  const rates = ["down", "up"].filter((direction) => data.rates[direction].length > 0).map((direction) => {
    const rate = median(data.rates[direction].map(([, rate]) => rate));
    return `${PHASE_NAMES[direction]} about ${rateText(rate)}`;
  });
  const pings = data.pings.length > 0 ? [`round trips up to ${timeText(Math.max(...data.pings.map(([, time]) => time)))}`] : [];
  return `Rates and round trips over time: ${[...rates, ...pings].join(", ") || "nothing yet"}`;
}

// Adds the server's samples: rates over half a second.
function addSamples(samples) {
  for (const sample of samples) {
    data.samples.push(sample);
    const of = data.samples.filter((other) => other.direction === sample.direction);
    const before = of[Math.max(0, of.length - 6)];
    const seconds = (sample.at_ms - before.at_ms) / 1000;
    if (seconds < 0.2) continue;
    const rate = ((sample.bytes - before.bytes) * 8) / seconds;
    const direction = sample.direction;
    data.rates[direction].push([sample.at_ms / 1000, Math.max(0, rate)]);
    data.end = Math.max(data.end, sample.at_ms / 1000);
    show(direction, rateText(rate));
  }
  draw();
}

function addPing({ phase, at, time }) {
  data.pings.push([at / 1000, time]);
  data.end = Math.max(data.end, at / 1000);
  if (phase === "idle") show("idle", timeText(median(data.pings.map(([, time]) => time))));
  draw();
}

const HANDLERS = {
  session({ session }) {
    show("server", `${session.server} (linerate ${session.linerate_version})`);
    byId("results").hidden = false;
  },
  phase({ name, at, time }) {
    data.phases.push({ name: PHASE_NAMES[name], at: at / 1000 });
    show("status", `${PHASE_STATUS[name]} ${Math.round(time / 1000)} s`);
    draw();
  },
  ping: addPing,
  samples: ({ samples }) => addSamples(samples),
  end({ problem, answer }) {
    worker?.terminate();
    worker = null;
    byId("stop").hidden = true;
    byId("start").hidden = false;
    byId("start").disabled = false;
    show("start", "Test again");
    show("status", problem ? "" : "Done.");
    byId("error").hidden = !problem;
    if (problem) show("error", `The test ended early: ${problem}. ${remedy(problem)}`);
    if (answer) showResult(answer);
  },
};

function remedy(problem) {
  if (/busy|too many|no memory/.test(problem)) return "Other tests are running: try again in a minute.";
  if (/limit/.test(problem)) return "The server's operator has set this limit.";
  if (/connection|moved/.test(problem)) return "Check that this device is still connected, and test again.";
  return "";
}

function start() {
  Object.assign(data, { rates: { down: [], up: [] }, pings: [], phases: [], samples: [], end: 0 });
  for (const id of ["down", "up", "idle", "grade"]) show(id, "–");
  for (const id of ["down-detail", "up-detail", "idle-detail"]) show(id, "");
  show("grade-detail", "measuring");
  byId("tile-grade").className = "tile grade";
  byId("verdict").hidden = true;
  byId("error").hidden = true;
  byId("start").hidden = true;
  byId("stop").hidden = false;
  show("status", "Connecting …");
  worker = new Worker("/worker.js");
  worker.onmessage = ({ data: message }) => HANDLERS[message.type](message);
  worker.onerror = () => HANDLERS.end({ problem: "the measurement could not be started", answer: null });
  worker.postMessage("start");
}

const nanoseconds = (time) => timeText(time / 1e6);
const percent = (share) => `${Number((share * 100).toPrecision(2))} %`;

function bytesText(bytes) {
  return bytes >= 1e6 ? `${Number((bytes / 1e6).toPrecision(3))} MB` : `${Number((bytes / 1e3).toPrecision(3))} kB`;
}

function showResult(answer) {
  run = answer.run;
  const web = run.result.web;
  const phase = (kind) => web.phases.find((one) => one.kind === kind);
  for (const direction of ["down", "up"]) {
    const one = phase(direction);
    show(direction, one?.goodput_bits_per_second ? rateText(one.goodput_bits_per_second) : "unknown");
    const added = one?.browser_added_p95_ns;
    show(`${direction}-detail`, added === null || added === undefined ? "added delay unknown" : `adds ${nanoseconds(Math.max(0, added))}`);
  }
  const idle = phase("idle")?.browser_rtt;
  show("idle", idle ? nanoseconds(idle.median_ns) : "unknown");
  show("idle-detail", idle ? `${nanoseconds(idle.min_ns)} to ${nanoseconds(idle.max_ns)}` : "");
  showGrade(web);
  showLimits(phase);
  showNext(web, phase);
  showView(phase);
  byId("notes").replaceChildren(...web.notes.map((note) => item(note)));
  show("kept", answer.kept_as_run ? `Kept as run ${answer.kept_as_run} in the server's history.` : "");
  byId("verdict").hidden = false;
}

function showGrade(web) {
  const grade = web.grade;
  show("grade", grade ? grade.letter : "–");
  show("grade-detail", grade ? `the worse load adds ${nanoseconds(grade.added_ns)}` : `no grade: ${web.ungraded_because}`);
  if (!grade) return;
  const tone = ["A+", "A"].includes(grade.letter) ? "good" : ["B", "C"].includes(grade.letter) ? "fair" : "bad";
  byId("tile-grade").classList.add(tone);
}

function item(text) {
  const made = document.createElement("li");
  made.textContent = text;
  return made;
}

function part(name, text, className) {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function showLimits(phase) {
  const parts = [];
  for (const direction of ["down", "up"]) {
    const verdict = phase(direction)?.verdicts[0];
    if (!verdict) continue;
    parts.push(part("dt", PHASE_NAMES[direction][0].toUpperCase() + PHASE_NAMES[direction].slice(1)));
    parts.push(part("dd", verdict.text));
    const sure = verdict.location === "unknown" ? "By" : `Confidence: ${verdict.confidence}, by`;
    parts.push(part("dd", `${sure} the server's view alone.`, "sure"));
  }
  byId("limits").replaceChildren(...(parts.length > 0 ? parts : [part("dd", "Too little data moved to say.")]));
}

// Advice as a sentence, with this server's name for the far end.
function sentence(advice) {
  const named = advice.replaceAll("HOST --far ssh:USER@HOST", `${location.hostname} --far ssh:USER@${location.hostname}`).replaceAll(/\bHOST\b/g, location.hostname);
  return `${named[0].toUpperCase()}${named.slice(1)}.`.replaceAll("`", "");
}

function showNext(web, phase) {
  const steps = [];
  const grade = web.grade?.letter;
  const rate = (direction) => phase(direction)?.goodput_bits_per_second;
  if (grade && !["A+", "A"].includes(grade) && web.grade.is_on_path === false) {
    steps.push("The loaded connections themselves did not wait that long: this browser or one of the hosts was busy, not the link. Close other programs and test again, or measure with linerate from a Linux host.");
  } else if (grade && !["A+", "A"].includes(grade)) {
    const rates = [["--up", rate("up")], ["--down", rate("down")]].filter(([, value]) => value);
    const options = rates.map(([option, value]) => `${option} ${Math.round((value * 0.9) / 1e5) / 10}M`).join(" ");
    steps.push(`Calls and games suffer while this link is busy. If the router is a Linux host, shape the link there: sudo linerate shape DEVICE ${options} (DEVICE faces the Internet). Other routers call it SQM or smart queues: set it to nine tenths of the rates above.`);
  }
  if (grade && ["A+", "A"].includes(grade)) steps.push("The delay under load is small: nothing to change for calls and games.");
  for (const direction of ["down", "up"]) {
    const verdict = phase(direction)?.verdicts[0];
    if (!verdict || verdict.location === "unknown") continue;
    for (const advice of verdict.advice) if (!steps.includes(sentence(advice))) steps.push(sentence(advice));
  }
  steps.push(`From a Linux host on the same link, with the view of both ends: linerate diagnose ${location.hostname}`);
  byId("next").replaceChildren(...steps.map(item));
}

const ROWS = [
  ["Data", (one) => one.bytes !== null && bytesText(one.bytes)],
  ["Connections", (one) => String(one.connections)],
  ["Round trip, smallest", (one) => one.kernel_rtt_min_ns && nanoseconds(one.kernel_rtt_min_ns)],
  ["Round trip, median", (one) => one.kernel_rtt && nanoseconds(one.kernel_rtt.median_ns)],
  ["Congestion window, all", (one) => one.congestion_window_bytes && bytesText(one.congestion_window_bytes)],
  ["Retransmitted", (one) => one.retransmitted_share !== null && `${percent(one.retransmitted_share)} (${one.retransmitted_segments} segments)`],
  ["Limited by receive window", (one) => one.limits && `${percent(one.limits.receive_window)} of the time`],
  ["Limited by send buffer", (one) => one.limits && `${percent(one.limits.send_buffer)} of the time`],
];

function showView(phase) {
  const rows = ROWS.map(([name, value]) => {
    const row = document.createElement("tr");
    const head = part("th", name);
    head.scope = "row";
    const cell = (direction) => {
      const one = phase(direction);
      return part("td", (one && value(one)) || (direction === "up" && one ? "only the browser's host knows" : "unknown"));
    };
    row.append(head, cell("down"), cell("up"));
    return row;
  });
  byId("view").tBodies[0].replaceChildren(...rows);
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(run, null, 2)], { type: "application/json" }));
  link.download = `linerate-web-${new Date(run.started_at_unix_ns / 1e6).toISOString().replace(/[:.]/g, "-")}.json`;
  link.click();
  URL.revokeObjectURL(link.href);
}

byId("start").addEventListener("click", start);
byId("stop").addEventListener("click", () => {
  show("status", "Stopping …");
  worker?.postMessage("stop");
});
byId("save").addEventListener("click", save);
addEventListener("resize", () => {
  if (data.end > 0) draw();
});
byId("start").disabled = false;
