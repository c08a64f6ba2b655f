// The measurement: opens a session, loads both directions in turn, and times small requests on a connection of their own all the
// while. Runs in a worker, so that drawing delays nothing.
"use strict";

const STREAMS = 4;
const IDLE_MS = 3000;
const SETTLE_MS = 700;
const PING_INTERVAL_MS = 100;
const POLL_MS = 400;
const STALL_MS = 10000;
const LAST_SAMPLES_MS = 2000;
const UPLOAD_BYTES = 32 << 20;
const MAX_RETRIES = 5;

let session;
let started = 0;
let stopped = false;
const roundTrips = { idle: [], down: [], up: [] };

const tell = (type, content) => postMessage({ type, ...content });
const since = () => performance.now() - started;
const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));
const path = (name, more = "") => `/api/${name}?session=${session.session}${more}`;

class Refused extends Error {}

// The reason of a response that is none of success.
async function reasonOf(response) {
  const text = await response.text().catch(() => "");
  try {
    return JSON.parse(text).error;
  } catch {
    return text.trim() || `the server answered with status ${response.status}`;
  }
}

async function checked(response) {
  if (!response.ok) throw new Refused(await reasonOf(response));
  return response;
}

// Pings until the signal: each waits for the one before it.
async function ping(phase, signal) {
  let number = 0;
  let failures = 0;
  while (!signal.aborted) {
    const url = new URL(path("ping", `&n=${phase}${number}`), location.href).href;
    const begin = performance.now();
    try {
      const response = await checked(await fetch(url, { cache: "no-store", signal }));
      await response.text();
      const wall = performance.now() - begin;
      failures = 0;
      // The first request of a connection includes its handshake.
      if (number > 1) record(phase, begin, measured(url, wall));
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      if (error instanceof Refused || failures > MAX_RETRIES) throw error;
    }
    number += 1;
    await sleep(Math.max(10, PING_INTERVAL_MS - (performance.now() - begin)));
  }
}

// The network's own timing of a request where the browser reports it, else the time until the answer was handled.
function measured(url, wall) {
  const entry = performance.getEntriesByName(url).pop();
  performance.clearResourceTimings();
  const network = entry && entry.requestStart > 0 ? entry.responseStart - entry.requestStart : 0;
  return network > 0 && network < wall ? network : wall;
}

function record(phase, begin, time) {
  const at = Math.max(0, Math.round(begin - started));
  roundTrips[phase].push([at, Math.max(1, Math.round(time * 1000))]);
  tell("ping", { phase, at, time });
}

// One download after another, until the signal.
async function download(signal, moved) {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const response = await checked(await fetch(path("download"), { cache: "no-store", signal }));
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        failures = 0;
        moved(value.byteLength);
      }
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      if (error instanceof Refused || failures > MAX_RETRIES) throw error;
      await sleep(100);
    }
  }
}

let block;

function uploadData() {
  if (block) return block;
  const random = new Uint8Array(1 << 20);
  for (let at = 0; at < random.length; at += 65536) crypto.getRandomValues(random.subarray(at, at + 65536));
  block = new Blob(Array.from({ length: UPLOAD_BYTES / random.length }, () => random));
  return block;
}

// One upload; XMLHttpRequest reports its progress, fetch does not.
function post(signal, moved) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    let before = 0;
    request.open("POST", path("upload"));
    request.upload.onprogress = ({ loaded }) => {
      moved(loaded - before);
      before = loaded;
    };
    request.onload = () => {
      if (request.status < 300) return resolve();
      let reason = `the server answered with status ${request.status}`;
      try {
        reason = JSON.parse(request.responseText).error;
      } catch {
        // The status says enough.
      }
      return reject(new Refused(reason));
    };
    request.onerror = () => reject(new Error("the connection was lost"));
    request.onabort = () => resolve();
    signal.addEventListener("abort", () => request.abort());
    request.send(uploadData());
  });
}

async function upload(signal, moved) {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await post(signal, moved);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      if (error instanceof Refused || failures > MAX_RETRIES) throw error;
      await sleep(100);
    }
  }
}

let seen = 0;

// The server's samples since the last ones.
async function fetchSamples(signal) {
  const response = await fetch(path("session", `&from=${seen}`), { cache: "no-store", signal }).catch(() => null);
  if (!response?.ok) return;
  const { samples } = await response.json().catch(() => ({ samples: [] }));
  seen += samples.length;
  tell("samples", { samples });
}

async function poll(signal) {
  while (!signal.aborted) {
    await sleep(POLL_MS);
    await fetchSamples(signal);
  }
}

// Runs a phase: pings, and with a load its streams, until its time is over or one of them fails.
async function phase(name, time, load) {
  tell("phase", { name, at: since(), time });
  const control = new AbortController();
  const { signal } = control;
  let last = performance.now();
  const moved = (bytes) => {
    if (bytes > 0) last = performance.now();
  };
  const watch = async () => {
    const end = performance.now() + time;
    while (performance.now() < end) {
      await sleep(Math.min(100, Math.max(1, end - performance.now())));
      if (stopped) throw new Error("stopped");
      if (load && performance.now() - last > STALL_MS) throw new Error("no data has moved for ten seconds");
    }
  };
  const tasks = [ping(name, signal)];
  if (load) {
    tasks.push(poll(signal));
    for (let stream = 0; stream < STREAMS; stream += 1) tasks.push(load(signal, moved));
  }
  const failed = new Promise((_, reject) => tasks.forEach((task) => task.catch(reject)));
  try {
    await Promise.race([watch(), failed]);
  } finally {
    control.abort();
    await Promise.allSettled(tasks);
  }
  // Those of the end, and all of them where a busy browser or link has left no question an answer.
  if (load) await fetchSamples(AbortSignal.timeout(LAST_SAMPLES_MS));
}

async function result(error) {
  const body = JSON.stringify({ round_trips: roundTrips, ...(error ? { error } : {}) });
  const response = await fetch(path("result"), { method: "POST", body, cache: "no-store" });
  return (await checked(response)).json();
}

async function test() {
  session = await (await checked(await fetch("/api/session", { method: "POST", cache: "no-store" }))).json();
  started = performance.now();
  tell("session", { session });
  await phase("idle", IDLE_MS);
  await phase("down", session.phase_ms, download);
  await sleep(SETTLE_MS);
  uploadData();
  await phase("up", session.phase_ms, upload);
}

function text(error) {
  if (error.message === "stopped") return "the test was stopped";
  return error instanceof Refused ? error.message : `the connection to the server failed (${error.message})`;
}

async function run() {
  let problem = null;
  try {
    await test();
  } catch (error) {
    problem = text(error);
  }
  let answer = null;
  if (session) {
    try {
      answer = await result(problem);
    } catch (error) {
      problem ??= text(error);
    }
  }
  tell("end", { problem, answer });
}

onmessage = ({ data }) => {
  if (data === "start") run();
  if (data === "stop") stopped = true;
};
