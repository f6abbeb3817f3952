// Reads questions, a JSON object a line {expr, zone, start, until, count}, times in milliseconds, and answers each
// with {runs, offsets} in milliseconds and seconds, or {error}. croner is looked for in the working directory.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { Cron } = createRequire(process.cwd() + "/")("croner");

// offset is how far a zone's clock is ahead of UTC, in seconds, in the zone data of this node.
const clocks = new Map();
function offset(zone, ms) {
  if (!clocks.has(zone)) {
    clocks.set(zone, new Intl.DateTimeFormat("en-US", {
      timeZone: zone, year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric",
      second: "numeric", hourCycle: "h23",
    }));
  }
  const p = Object.fromEntries(clocks.get(zone).formatToParts(new Date(ms)).map((x) => [x.type, Number(x.value)]));
  return (Date.UTC(p.year, p.month - 1, p.day, p.hour, p.minute, p.second) - Math.floor(ms / 1000) * 1000) / 1000;
}

for await (const line of createInterface({ input: process.stdin })) {
  const q = JSON.parse(line);
  const answer = { runs: [] };
  try {
    const job = new Cron(q.expr, { timezone: q.zone, fixedTimeRule: "no-wildcard", sloppyRanges: true, paused: true });
    for (let at = new Date(q.start); answer.runs.length < q.count; ) {
      at = job.nextRun(at);
      if (at === null || at.getTime() > q.until) break;
      answer.runs.push(at.getTime());
    }
  } catch (e) {
    answer.error = String(e.message);
  }
  answer.offsets = (q.at ?? []).map((ms) => offset(q.zone, ms));
  process.stdout.write(JSON.stringify(answer) + "\n");
}
