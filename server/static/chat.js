// A chat page: sends messages and answers without loading the page again, and shows the answer while it is written. What it shows at the end
// is the page that the server makes: it asks for it then, after each question, and after each lost connection.
"use strict";

const here = location.pathname.replace(/\/\d+\/answer$/, "");
const log = document.getElementById("log");
const form = document.getElementById("chat");
const box = document.getElementById("message");
const number = document.getElementById("n");
const send = document.getElementById("send");
const stop = document.getElementById("stop");
const problem = document.getElementById("problem");
const said = document.getElementById("said"); // for screen readers: whole answers, not each piece
const AGAIN_MS = 2000;
const WORDS = {
  working: "The answer is being written.",
  waiting: "A person has to agree before the answer continues.",
  lost: "The connection is lost. It is tried again.",
};
let source = null;
let later = 0;
let asked = 0; // questions of the answer under way that the page has

const isOpen = (answer) => answer?.dataset.state === "working" || answer?.dataset.state === "waiting";
const lastAnswer = () => [...log.querySelectorAll(".answer")].at(-1);

/** Shows the messages of a page of the server. */
function show(page) {
  log.replaceChildren(...page.getElementById("log").children);
  number.value = page.getElementById("n").value;
  localTimes();
  const last = lastAnswer();
  open(isOpen(last) ? last : null);
  return last;
}

/** Follows the answer under way, if there is one. */
function open(answer) {
  if (source) source.close();
  source = null;
  clearTimeout(later);
  send.hidden = answer !== null;
  stop.hidden = answer === null;
  log.setAttribute("aria-busy", String(answer !== null));
  if (answer === null) return;
  const text = answer.querySelector("p");
  let written = "";
  let waits = 0;
  asked = Math.max(asked, Number(answer.dataset.asked));
  const write = (words, state) => {
    text.textContent = words;
    text.className = written && words === written ? "text" : "text quiet";
    answer.dataset.state = state;
    answer.hidden = false;
    answer.toggleAttribute("data-writing", words === written);
  };
  source = new EventSource(`${here}/${answer.dataset.n}/events`);
  source.addEventListener("begin", () => {
    written = "";
    write(WORDS.working, "working");
  });
  source.addEventListener("text", (event) => {
    written += JSON.parse(event.data).text;
    write(written, "working");
    follow();
  });
  source.addEventListener("tool", (event) => {
    work(answer, JSON.parse(event.data));
    follow();
  });
  source.addEventListener("waiting", () => {
    waits += 1;
    if (waits > asked) {
      asked = waits; // it may be a question to the visitor: the server's page shows it
      return void load();
    }
    if (answer.dataset.state !== "waiting") again(); // the page was made just before the run waited: its question may be missing
    answer.dataset.state = "waiting";
    if (log.querySelector(".question")) answer.hidden = true;
    else write(WORDS.waiting, "waiting");
    said.textContent = log.querySelector(".question h2")?.textContent ?? WORDS.waiting;
  });
  source.addEventListener("working", () => write(WORDS.working, "working"));
  source.addEventListener("end", () => load());
  source.addEventListener("error", () => {
    source.close(); // a stream that is opened again begins at its beginning
    written = "";
    write(WORDS.lost, "working");
    again();
  });
}

/** The line of a tool, below the message that it is called for. */
function work(answer, tool) {
  let at = answer;
  while (!at.matches(".asked")) at = at.previousElementSibling;
  while (at.nextElementSibling.matches(".tool") && at.dataset.tool !== tool.name) at = at.nextElementSibling;
  let line = at;
  if (at.dataset.tool !== tool.name) at.after((line = document.createElement("li")));
  const state = document.createElement("span");
  if (tool.state === "done") state.className = "unseen"; // the dot is enough
  state.textContent = tool.words;
  line.className = "tool";
  line.dataset.tool = tool.name;
  line.dataset.state = tool.state;
  line.replaceChildren(tool.text, state);
}

function again() {
  clearTimeout(later);
  later = setTimeout(load, AGAIN_MS);
}

async function load() {
  if (source) source.close();
  try {
    const response = await fetch(here, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (!response.ok) throw new Error(response.statusText);
    const last = show(new DOMParser().parseFromString(await response.text(), "text/html"));
    if (last && !isOpen(last)) {
      asked = 0;
      const words = last.querySelector("p").textContent;
      said.textContent = last.dataset.state === "answered" ? `Answer: ${words}` : words;
    }
    follow();
  } catch {
    again();
  }
}

/** The end of the conversation stays in view, unless the reader has scrolled up. */
function follow() {
  const left = document.documentElement.scrollHeight - innerHeight - scrollY;
  if (left < 400) scrollTo({ top: document.documentElement.scrollHeight });
}

function localTimes() {
  for (const time of log.querySelectorAll("time[datetime]:not([title])")) {
    time.title = time.textContent;
    const at = new Date(time.dateTime);
    time.textContent =
      at.toDateString() === new Date().toDateString()
        ? `Today, ${at.toLocaleTimeString(undefined, { timeStyle: "short" })}`
        : at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  }
}

function tell(text) {
  problem.textContent = text;
  problem.hidden = text === "";
}

/** Sends a form of this page. Returns whether the server accepted it; else the reason is shown. */
async function post(to, body) {
  tell("");
  try {
    const response = await fetch(to, { method: "POST", headers: { Accept: "application/json" }, body: new URLSearchParams(body) });
    if (response.ok) return true;
    const answer = await response.json().catch(() => ({}));
    if (response.status === 409) await load();
    tell([answer.detail, answer.hint].filter(Boolean).join(" ") || "The message was not sent. Try again.");
  } catch {
    tell("The server cannot be reached. The message was not sent; try again.");
  }
  return false;
}

async function say() {
  const message = box.value.trim();
  if (!message || send.disabled || send.hidden) return;
  send.disabled = true;
  if (await post(here, { message, n: number.value })) {
    box.value = "";
    await load();
  }
  send.disabled = false;
  box.focus();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  say();
});
box.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  say();
});
stop.addEventListener("click", async () => {
  stop.disabled = true;
  const last = lastAnswer();
  if (isOpen(last)) await post(`${here}/${last.dataset.n}/stop`, { n: last.dataset.n });
  stop.disabled = false;
  box.focus();
});
log.addEventListener("submit", async (event) => {
  const one = event.target;
  event.preventDefault();
  if (!one.reportValidity()) return;
  const buttons = one.querySelectorAll("button");
  const filled = new FormData(one, event.submitter); // read first: a disabled button is no part of it
  for (const button of buttons) button.disabled = true;
  if (await post(one.getAttribute("action"), filled)) await load();
  else for (const button of buttons) button.disabled = false;
});

for (const each of document.querySelectorAll(".scripted")) each.hidden = false;
localTimes();
const last = lastAnswer();
if (isOpen(last)) open(last);
scrollTo({ top: document.documentElement.scrollHeight });
