"use strict";
// The page of the service. One stream of server-sent events, read with fetch so that a token can be sent with it.

const $ = id => document.getElementById(id);
const KEY = "semibandit-token";
const STALE = 12000; // the stream speaks every three seconds at least
const LETTERS = { select: "select", rewards: "rewards", batch: "batch", other: "the rest" };

// -- numbers and words ---------------------------------------------------------------------------------------

const whole = n => Math.round(n).toLocaleString("en");
function figure(v) { // three digits that matter
  if (v === null || v === undefined || !isFinite(v)) return "–";
  const size = Math.abs(v);
  if (size >= 1000) return whole(v);
  return size >= 100 ? v.toFixed(0) : size >= 10 ? v.toFixed(1) : size >= 0.095 || size === 0 ? v.toFixed(3) : v.toPrecision(2);
}
const rate = v => v >= 99.5 ? whole(v) : v >= 9.95 ? v.toFixed(0) : v > 0 ? v.toFixed(1) : "0";
function seconds(v) {
  if (v === null || v === undefined) return "–";
  if (v < 1e-3) return `${Math.round(v * 1e6)} µs`;
  if (v < 1) return `${(v * 1e3).toFixed(v < 0.01 ? 1 : 0)} ms`;
  return `${v.toFixed(1)} s`;
}
function span(v) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) if (v >= 2 * size) return `${Math.round(v / size)} ${unit}`;
  return `${Math.round(v)} s`;
}

// -- elements: text is only ever set as text -----------------------------------------------------------------

function make(tag, attributes, ...children) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) one.setAttribute(name, value);
  one.append(...children);
  return one;
}
function draw(tag, attributes, text) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  if (text !== undefined) one.textContent = text;
  return one;
}
function say(id, text) { const at = $(id); if (at.textContent !== text) at.textContent = text; }

// -- what is known -------------------------------------------------------------------------------------------

let past = { version: "" }, recent = [], course = [], about = null, frame = null;

function begin(first) {
  past = first;
  recent = first.seconds.map(([at, decisions, rewards, sum, pending, p99]) => ({ at, decisions, rewards, sum, pending, p99 }));
  course = first.course.map(([at, decisions, rewards, sum]) => ({ at, decisions, rewards, sum }));
  about = null;
}

function take(now) {
  frame = now;
  const policy = now.policy;
  if (policy) {
    if (policy.about) about = policy.about;
    const last = recent[recent.length - 1];
    if (last && (policy.decisions < last.decisions || now.at < last.at - 5)) { recent = []; course = []; }
    const all = now.latencies.all;
    if (last && now.at - last.at < 0.3) recent.pop();
    recent.push({ at: now.at, decisions: policy.decisions, rewards: policy.rewards, pending: policy.pending,
      p99: all ? all[2] : null, sum: policy.reward_sum });
    while (recent.length > 2 && recent[0].at < now.at - 300) recent.shift();
    const end = course[course.length - 1], long = course.length ? now.at - course[0].at : 0;
    if (!end || now.at - end.at >= Math.max(0.9, long / 400))
      course.push({ at: now.at, decisions: policy.decisions, rewards: policy.rewards, sum: policy.reward_sum });
    if (course.length > 1000) course = course.filter((_, i) => i % 2 === 0 || i === course.length - 1);
  }
  show();
}

/** The point at or before `at`; the first one if there is none. */
function before(points, at) {
  let low = 0, high = points.length - 1;
  while (low < high) { const mid = (low + high + 1) >> 1; if (points[mid].at <= at) low = mid; else high = mid - 1; }
  return points[low];
}
/** By how much `key` grew per second in the last `long` seconds. */
function speed(key, long) {
  const end = recent[recent.length - 1], start = before(recent, end.at - long);
  return end.at > start.at ? (end[key] - start[key]) / (end.at - start.at) : 0;
}
function rates(key) {
  const found = [];
  for (let i = 1; i < recent.length; i++) {
    const took = recent[i].at - recent[i - 1].at;
    if (took > 0) found.push([recent[i].at, (recent[i][key] - recent[i - 1][key]) / took]);
  }
  return found;
}
/** Mean reward in the last minute and of how many, null without any. */
function lately() {
  const policy = frame.policy, start = before(recent, frame.at - 60), n = policy.rewards - start.rewards;
  return n > 0 ? { mean: (policy.reward_sum - start.sum) / n, n } : null;
}

// -- the page ------------------------------------------------------------------------------------------------

function show() {
  showChooser();
  state(frame.down === null ? "serving" : "down", frame.down === null ? "serving" : frame.down);
  fill();
}

/** All but how the stream stands: also when the window changes its size. */
function fill() {
  const policy = frame.policy;
  $("all").hidden = !policy;
  if (!policy) {
    say("name", frame.policies.length || frame.down !== null ? wanted || "" : "no policy yet");
    if (wanted && frame.down === null) state("down", `policy ${wanted} is not here`);
    return;
  }
  say("name", policy.name);
  if (about) say("what", `${about.policy} chooses ` + (about.labelled ? `up to ${whole(about.rank)} of ${whole(about.labels)} labels` : `${whole(about.rank)} of ${whole(about.n_arms)} arms`));
  const last = lately(), minute = last && last.mean, overall = policy.rewards ? policy.reward_sum / policy.rewards : null;
  const cost = about && about.objective === "min", word = cost ? "cost" : "reward";
  document.title = `${figure(minute === null ? overall : minute)} · ${policy.name} · semibandit`;
  showSummary(policy, last, overall, cost, word);
  showTiles(policy, minute, overall, word);
  say("h-course", `Mean ${word} over time`);
  showCourse(word);
  showArms(policy);
  showInside(policy);
  say("foot", `semibandit ${past.version}`);
}

function showChooser() {
  const choice = $("policy"), names = frame.policies;
  const one = names.length < 2 && !(wanted && names.length && !names.includes(wanted));
  $("choose").hidden = one;
  $("name").parentNode.classList.toggle("hear", !one); // the chooser says it
  if (choice.dataset.names !== names.join("/")) {
    choice.replaceChildren(...names.map(one => make("option", { value: one }, one)));
    choice.dataset.names = names.join("/");
  }
  const shown = frame.policy ? frame.policy.name : "";
  if (document.activeElement !== choice || choice.value === "") choice.value = shown;
}

function showSummary(policy, last, overall, cost, word) {
  const line = $("summary"), parts = [];
  const busy = speed("decisions", 60) > 0;
  if (!policy.decisions) {
    parts.push("Waiting for the first decision. Ask for one: ", make("code", {},
      `curl -X POST ${location.origin}/v1/policies/${policy.name}/select -H 'content-type: application/json' -d '{}'`));
  } else if (overall === null) {
    parts.push(`${whole(policy.decisions)} decisions made. No ${word} has come yet, so nothing is learnt.`);
  } else if (last === null) {
    parts.push(busy ? `Deciding, but no ${word} came in the last minute. ` : "Idle: nothing was asked in the last minute. ",
      `Mean ${word} so far `, make("b", {}, figure(overall)), ".");
  } else {
    const change = last.mean - overall, [low, high] = about ? about.reward_range : [null, null];
    // Two standard errors of rewards that vary as much as their range allows: less may be chance.
    const size = low !== null && high !== null ? (high - low) : Math.abs(overall), chance = size / Math.sqrt(last.n);
    const better = cost ? change < 0 : change > 0, matters = Math.abs(change) > Math.max(chance, 0.005 * size);
    parts.push(busy ? "Learning. " : "", `Mean ${word} `, make("b", {}, figure(last.mean)), " in the last minute, ");
    if (matters) parts.push(make("span", { class: better ? "up" : "dip" },
      `${change > 0 ? "▲" : "▼"} ${figure(Math.abs(change))} ${better ? "better" : "worse"}`), ` than on average (${figure(overall)}).`);
    else parts.push(`${figure(overall)} on average.`);
  }
  line.replaceChildren(...parts);
}

function showTiles(policy, minute, overall, word) {
  say("t-mean", `Mean ${word}, last minute`);
  say("mean", figure(minute));
  $("mean-sub").replaceChildren(...overall === null ? [`no ${word} yet`] : [make("b", {}, figure(overall)), " since it was made"]);
  say("decisions", rate(speed("decisions", 5)));
  say("decisions-sub", `${whole(policy.decisions)} in all`);
  say("rewards", rate(speed("rewards", 5)));
  say("rewards-sub", `${whole(policy.rewards)} in all`);
  say("pending", whole(policy.pending));
  say("pending-unit", policy.pending === 1 ? "decision" : "decisions");
  const lost = policy.expired, late = policy.late;
  $("pending-sub").replaceChildren(lost || late
    ? make("span", { class: "warn" }, [lost ? `${whole(lost)} expired` : "", late ? `${whole(late)} came too late` : ""].filter(Boolean).join(", "))
    : "none expired, none late");
  const all = frame.latencies.all || [null, null, null];
  say("latency", seconds(all[2]));
  say("latency-sub", all[0] === null ? "no request in 10 s" : `half within ${seconds(all[0])}`);
  spark("s-decisions", rates("decisions"));
  spark("s-rewards", rates("rewards"));
  spark("s-pending", recent.map(one => [one.at, one.pending]));
  spark("s-latency", recent.map(one => [one.at, one.p99 || 0]));
}

/** The last two minutes as a line over a filled area, from zero. */
function spark(id, points) {
  const svg = $(id), width = svg.clientWidth || 160, height = 30, end = frame.at, long = 120;
  const seen = points.filter(([at]) => at >= end - long);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const most = Math.max(...seen.map(([, v]) => v), 1e-12);
  const line = seen.map(([at, v]) => `${(width * (1 - (end - at) / long)).toFixed(1)} ${(height - 1 - (height - 3) * Math.max(0, v) / most).toFixed(1)}`);
  if (line.length < 2) { svg.replaceChildren(); return; }
  const path = `M${line.join("L")}`, from = line[0].split(" ")[0], to = line[line.length - 1].split(" ")[0];
  svg.replaceChildren(draw("path", { class: "area", d: `${path}L${to} ${height}L${from} ${height}Z` }), draw("path", { d: path }));
}

/** A round number: about `wish` of it are from low to high. */
function stepOf(low, high, wish) {
  const rough = (high - low) / wish, size = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map(s => s * size).find(s => s >= rough * 0.999);
}
function ticks(low, high, wish) {
  const step = stepOf(low, high, wish), found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

function showCourse(word) {
  const svg = $("course"), height = 250, left = 46, right = 12, top = 10, bottom = 26;
  const empty = course.length < 2 || !frame.policy.rewards;
  for (const one of [svg, svg.parentNode.querySelector(".key")]) one.toggleAttribute("hidden", empty);
  if (empty) { say("course-says", `No ${word} yet.`); return; }
  const width = Math.max(svg.clientWidth, 200);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const idle = course.findIndex(one => one.rewards > course[0].rewards); // before the first reward there is nothing to see
  const start = course[Math.max(0, idle - 1)].at, end = Math.max(frame.at, start + 10), count = Math.max(12, Math.min(72, Math.floor((end - start) / 2), Math.floor(width / 7)));
  const slice = (end - start) / count, now = [], whole = [];
  let old = course[Math.max(0, idle - 1)];
  for (let i = 1; i <= count; i++) {
    const at = start + i * slice, point = i === count ? { ...frame.policy, sum: frame.policy.reward_sum } : before(course, at);
    if (point.rewards > old.rewards) now.push([at - slice / 2, (point.sum - old.sum) / (point.rewards - old.rewards)]);
    if (point.rewards) whole.push([at, point.sum / point.rewards]);
    old = point;
  }
  const values = [...now, ...whole].map(p => p[1]), range = about ? about.reward_range : [null, null];
  let low = Math.min(...values), high = Math.max(...values);
  const pad = Math.max(0.12 * (high - low), 0.02 * (range[0] !== null && range[1] !== null ? range[1] - range[0] : Math.abs(high)) || 0.01);
  low = range[0] === null ? low - pad : Math.max(range[0], low - pad);
  high = range[1] === null ? high + pad : Math.min(range[1], high + pad);
  if (high <= low) high = low + pad;
  const x = at => left + (at - start) / (end - start) * (width - left - right);
  const y = v => height - bottom - (v - low) / (high - low) * (height - top - bottom);
  const parts = [];
  for (const v of ticks(low, high, 4)) parts.push(draw("path", { class: "g", d: `M${left} ${y(v)}H${width - right}` }),
    draw("text", { class: "t e", x: left - 7, y: y(v) + 4 }, String(v)));
  parts.push(draw("path", { class: "a", d: `M${left} ${height - bottom}H${width - right}` }),
    draw("text", { class: "t", x: left, y: height - 8 }, `${span(end - start)} ago`),
    draw("text", { class: "t e", x: width - right, y: height - 8 }, "now"));
  if (end - start > 30 && width > 330) parts.push(draw("text", { class: "t m", x: (left + width - right) / 2, y: height - 8 }, `${span((end - start) / 2)} ago`));
  const d = points => points.map(([at, v], i) => `${i && at - points[i - 1][0] < Math.max(4 * slice, 20) ? "L" : "M"}${x(at).toFixed(1)} ${y(v).toFixed(1)}`).join("");
  parts.push(draw("path", { class: "whole", d: d(whole) }), draw("path", { class: "l c0", d: d(now) }));
  if (now.length) parts.push(draw("circle", { class: "now", r: 4.5, cx: x(now[now.length - 1][0]), cy: y(now[now.length - 1][1]) }));
  svg.replaceChildren(...parts);
  say("key-slice", `in each ${span(Math.max(1, slice))}`);
  say("course-says", now.length ? `From ${figure(now[0][1])} to ${figure(now[now.length - 1][1])} in ${span(end - start)}.` : `No ${word} since the service was started.`);
}

function showArms(policy) {
  const now = policy.peek, base = $("base"), others = $("others");
  if (!now) {
    base.replaceChildren(make("tr", { class: "group" }, make("th", { colspan: 5 }, policy.decisions ? "No decision is kept any more" : "No decision yet")));
    others.replaceChildren();
    $("axis").replaceChildren();
    say("arms-says", "");
    return;
  }
  const range = about ? about.reward_range : [null, null], seen = now.rows.filter(one => one.count > 0);
  const ends = seen.flatMap(one => [one.mean, one.low, one.high]).filter(v => v !== null);
  let low = ends.length ? Math.min(...ends) : range[0] === null ? 0 : range[0], high = ends.length ? Math.max(...ends) : range[1] === null ? 1 : range[1];
  if (range[0] !== null) low = Math.max(low, range[0]);
  if (range[1] !== null) high = Math.min(high, range[1]);
  if (!(high > low)) { low -= 0.5; high += 0.5; }
  const step = stepOf(low, high, 4);
  low = Math.floor(low / step + 1e-9) * step; // whole steps, so that the scale rests
  high = Math.ceil(high / step - 1e-9) * step;
  const width = Math.max(60, $("axis").clientWidth), at = v => 5 + (Math.min(Math.max(v, low), high) - low) / (high - low) * (width - 10);
  $("axis").replaceChildren(make("span", {}, String(Number(low.toPrecision(6)))), make("span", {}, String(Number(high.toPrecision(6)))));
  const row = one => {
    const svg = draw("svg", { viewBox: `0 0 ${width} 20`, "aria-hidden": "true" });
    svg.append(draw("path", { class: "rail", d: `M0 10H${width}` }));
    if (one.mean === null) svg.append(draw("rect", { class: "unseen", x: 5, y: 5, width: width - 10, height: 10, rx: 3 }));
    else {
      if (one.low !== null && one.high !== null) svg.append(draw("rect", { class: "span", x: at(one.low), y: 5, width: Math.max(2, at(one.high) - at(one.low)), height: 10, rx: 3 }));
      svg.append(draw("circle", { class: "mean", cx: at(one.mean), cy: 10, r: 4.5 }));
    }
    const heard = one.low === null ? "" : `${figure(one.low)} to ${figure(one.high)}`;
    return make("tr", {}, make("td", { class: "left", title: one.arm }, one.arm), make("td", { class: "wide" }, svg, make("span", { class: "hear" }, heard)),
      make("td", {}, figure(one.mean)), make("td", {}, whole(one.count)), make("td", {}, `${Math.round(100 * one.share)} %`));
  };
  const group = (name, more) => make("tr", { class: "group" }, make("th", { colspan: 5, scope: "rowgroup" }, name, " ", make("span", {}, more)));
  const mine = now.rows.filter(one => one.base), rest = now.rows.filter(one => !one.base);
  const some = now.size > mine.length ? `${mine.length} of ${whole(now.size)} arms` : `${whole(now.size)} arms`;
  base.replaceChildren(group("Current base", `${some}, chosen ${now.age < 1.5 ? "just now" : span(now.age) + " ago"}`), ...mine.map(row));
  others.replaceChildren(...rest.length ? [group("Also chosen lately", "not in this base"), ...rest.map(row)] : []);
  $("h-share").title = `share of the last ${now.back} decisions`;
  say("arms-says", `Dot: mean so far. Bar: where the policy expects the mean (dashed: never tried). Chosen: share of the last ${whole(now.back)} decisions.`);
}

function showInside(policy) {
  const told = [], facts = about || {};
  const add = (name, value, more) => told.push(make("dt", {}, name), make("dd", {}, value, ...more ? [make("span", { class: "soft" }, more)] : []));
  if (about) {
    add("Policy", String(facts.policy), ["posterior", "index", "clock"].filter(key => facts[key]).map(key => `${key} ${facts[key]}`).join(", "));
    if (facts.engine) add("Engine", String(facts.engine), facts.why ? String(facts.why) : "");
    add("Matroid", String(facts.matroid));
    add("Feedback", facts.ttl === null ? "taken for ever" : `taken for ${span(facts.ttl)}`);
    if (facts.bytes) add("Memory", facts.bytes >= 1e6 ? `${(facts.bytes / 1e6).toFixed(1)} MB` : `${(facts.bytes / 1e3).toFixed(1)} kB`);
  }
  const lag = frame.log_lag ? `${whole(frame.log_lag)} on the way to disk` : "all on disk";
  add("Log", `${whole(frame.position)} events, ${lag}`);
  add("Snapshot", frame.snapshot_age === null ? "none by this process yet" : `${span(frame.snapshot_age)} ago`);
  add("Requests", `${rate(frame.requests_per_second)} per second, ${frame.watchers === 1 ? "1 page" : `${whole(frame.watchers)} pages`} open`);
  $("inside").replaceChildren(...told);
  $("latencies").replaceChildren(...Object.entries(LETTERS).filter(([key]) => frame.latencies[key]).map(([key, name]) =>
    make("tr", {}, make("th", { class: "left", scope: "row" }, name), ...frame.latencies[key].map(v => make("td", {}, seconds(v))))));
}

function state(kind, text) { document.body.dataset.state = kind; say("status", text); }

// -- the stream ----------------------------------------------------------------------------------------------

let wanted = decodeURIComponent(location.hash.slice(1)) || null, stop = null, wait = 1000, again = null, turn = 0;
const kept = () => { try { return sessionStorage.getItem(KEY); } catch { return null; } };
function keep(token) {
  try { if (token) sessionStorage.setItem(KEY, token); else sessionStorage.removeItem(KEY); } catch { /* then it is asked again */ }
  $("forget").hidden = !token;
}

async function listen() {
  clearTimeout(again);
  if (stop) stop.abort();
  const mine = ++turn, control = stop = new AbortController();
  let watchdog = setTimeout(() => control.abort(), STALE);
  let told = "no connection";
  try {
    const token = kept(), query = wanted ? `?policy=${encodeURIComponent(wanted)}` : "";
    const answer = await fetch(`v1/watch${query}`, { headers: token ? { authorization: `Bearer ${token}` } : {}, signal: control.signal, cache: "no-store" });
    if (answer.status === 401 || answer.status === 403) { ask(answer.status, token); return; }
    if (!answer.ok) throw new Error(`answer ${answer.status}`);
    $("door").hidden = true;
    $("forget").hidden = !token;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done || mine !== turn) break;
      clearTimeout(watchdog);
      watchdog = setTimeout(() => control.abort(), STALE);
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const [, kind, data] = /^event: (\w+)\ndata: (.*)$/.exec(event) || [];
        if (kind === "first") begin(JSON.parse(data));
        else if (kind === "now") { wait = 1000; take(JSON.parse(data)); }
        else if (kind === "bye") told = "the service was stopped";
      }
    }
  } catch (error) {
    if (/^answer/.test(error.message)) told = error.message;
  } finally {
    clearTimeout(watchdog);
  }
  if (mine !== turn || !$("door").hidden) return;
  state("lost", `${told}, trying again`);
  again = setTimeout(listen, wait);
  wait = Math.min(2 * wait, 8000);
}

function ask(status, token) {
  keep(null);
  $("all").hidden = true;
  $("door").hidden = false;
  if (token) say("why", status === 401 ? "This token is not known here. Try another one." : "This token may not read. Try another one.");
  state("down", "a token is needed");
  $("token").focus();
}

$("door").addEventListener("submit", event => {
  event.preventDefault();
  keep($("token").value.trim());
  $("token").value = "";
  $("door").hidden = true;
  state("connecting", "connecting");
  listen();
});
$("forget").addEventListener("click", () => { keep(null); location.reload(); });
$("policy").addEventListener("change", event => { location.hash = encodeURIComponent(event.target.value); });
addEventListener("hashchange", () => {
  wanted = decodeURIComponent(location.hash.slice(1)) || null;
  state("connecting", "connecting");
  listen();
});
// A page that is kept in the background for the way back shall not keep its stream.
addEventListener("pagehide", () => { turn++; clearTimeout(again); if (stop) stop.abort(); });
addEventListener("pageshow", event => { if (event.persisted) listen(); });
addEventListener("resize", () => { if (frame) fill(); });
listen();
