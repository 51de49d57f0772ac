// Keeps the plain pages fresh: local times, the run and sign-in forms, and a run's events as they come.
// Everything is put in as text, never as markup.
"use strict";

const EVENTS_SHOWN = 500;

function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    time.title = time.textContent;
    time.textContent = new Date(time.dateTime).toLocaleString();
  }
}

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

async function post(url, body) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    const found = (answer.diagnostics || []).map((d) => d.pointer + ": " + d.message);
    throw new Error([answer.detail || response.statusText, ...found, answer.hint || ""].filter(Boolean).join("\n"));
  }
  return answer;
}

function onSubmit(form, act) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const notice = form.querySelector(".notice");
    const button = form.querySelector("button");
    notice.hidden = true;
    button.disabled = true;
    try {
      await act(new FormData(form));
    } catch (error) {
      notice.textContent = error.message;
      notice.hidden = false;
    } finally {
      button.disabled = false;
    }
  });
}

function runForm(form) {
  onSubmit(form, async (data) => {
    const text = String(data.get("input")).trim();
    const input = text ? JSON.parse(text) : null;
    const started = await post("/api/workflows/" + encodeURIComponent(form.dataset.run) + "/runs", { input });
    location.href = started.urls.page;
  });
}

function logoutForm(form) {
  onSubmit(form, async () => {
    await post("/logout", {});
    location.reload();
  });
}

// On its own page sign-in leads to the front page, on any other to that page.
function signedIn() {
  if (location.pathname === "/sign-in") location.replace("/");
  else location.reload();
}

function loginForm(form) {
  onSubmit(form, async (data) => {
    await post("/login", { token: String(data.get("token")).trim() });
    signedIn();
  });
  if (location.pathname !== "/sign-in") return;
  const byLink = () => {
    const code = location.hash.slice(1);
    if (!code) return;
    history.replaceState(null, "", "/sign-in"); // it counts once: not kept in the address bar
    post("/login", { code }).then(signedIn, (error) => {
      const notice = form.querySelector(".notice");
      notice.textContent = error.message;
      notice.hidden = false;
    });
  };
  addEventListener("hashchange", byLink); // a second link, pasted into the same tab
  byLink();
}

// ---- a run, live

const NODE_STATUS = {
  "node.started": "running", "node.succeeded": "succeeded", "node.failed": "failed", "node.skipped": "skipped",
  "retry.scheduled": "retrying", "wait.opened": "waiting", "region.sized": "succeeded", "region.exited": "succeeded",
};
const EVENT_CLASS = {
  "node.succeeded": "ok", "region.exited": "ok", "node.failed": "err", "retry.scheduled": "err", "node.started": "run",
  "run.started": "run", "wait.opened": "wait", "wait.closed": "wait", "run.parked": "wait",
};

function runPage(page) {
  const id = page.dataset.id;
  const url = "/api/runs/" + encodeURIComponent(id);
  const list = document.getElementById("events");
  const connection = document.getElementById("connection");
  let last = 0;
  let ended = false;
  let delay = 500;
  let refresh = 0;

  function say(event) {
    if (event.data.error) return event.data.error.message;
    if (event.type === "run.finished") return event.data.status;
    if ("output" in event.data) return JSON.stringify(event.data.output).slice(0, 200);
    const rest = Object.entries(event.data).filter(([name]) => name !== "run" && name !== "rules");
    return rest.map(([name, value]) => name + " " + (typeof value === "string" ? value : JSON.stringify(value))).join(", ").slice(0, 200);
  }

  function add(event) {
    const row = make("li", undefined, event.type === "run.finished" ? (event.data.status === "succeeded" ? "ok" : "err") : EVENT_CLASS[event.type]);
    row.append(make("span", event.seq), make("span", new Date(event.at).toLocaleTimeString()), make("span", event.type));
    row.append(make("span", [event.key, say(event)].filter(Boolean).join("  ")));
    list.append(row);
    while (list.children.length > EVENTS_SHOWN) list.firstChild.remove();
  }

  function node(event) {
    const status = event.type === "wait.closed" ? "running" : NODE_STATUS[event.type];
    if (!event.key || !status) return;
    const table = document.getElementById("nodes");
    let row = [...table.rows].find((r) => r.dataset.key === event.key);
    if (!row) {
      if (table.rows.length >= EVENTS_SHOWN) return;
      row = table.insertRow();
      row.dataset.key = event.key;
      for (let i = 0; i < 4; i++) row.insertCell();
      row.cells[0].append(make("code", event.key));
    }
    row.cells[1].replaceChildren(make("span", status, "status " + status));
    row.cells[2].textContent = event.attempt || row.cells[2].textContent;
    row.cells[3].textContent = event.data.error ? event.data.error.message : event.data.reason || "";
  }

  function delta(event) {
    let row = list.lastElementChild;
    if (!row || row.dataset.delta !== event.key) {
      row = make("li", event.key + "  ", "delta");
      row.dataset.delta = event.key;
      list.append(row);
    }
    row.append(event.text);
  }

  async function load() {
    const response = await fetch(url, { headers: { Accept: "application/json" } });
    if (!response.ok) return;
    const run = await response.json();
    document.getElementById("status").replaceChildren(make("span", run.status, "status " + run.status));
    document.title = run.workflow + " " + run.status + " · weft";
    const waits = (run.waits || []).filter((wait) => wait.status === "pending");
    document.getElementById("waiting").hidden = waits.length === 0;
    document.getElementById("waits").replaceChildren(...waits.map((wait) => {
      const card = make("li", undefined, "card waiting");
      const title = make(wait.link ? "a" : "span", (wait.request && wait.request.title) || wait.label || wait.block, "title");
      if (wait.link) title.href = wait.link;
      card.append(title, make("span", wait.kind + " · " + wait.key, "quiet"));
      return card;
    }));
    const error = document.getElementById("error");
    error.replaceChildren();
    if (run.error) error.append(make("p", (run.error.code || "error") + " " + (run.error.message || ""), "notice err"));
    const over = ["succeeded", "failed", "cancelled"].includes(run.status);
    document.getElementById("cancel").hidden = over;
    document.getElementById("result").hidden = run.status !== "succeeded";
    document.getElementById("output").replaceChildren(make("pre", JSON.stringify(run.output, null, 2), "json"));
    if (run.finished_at_ms) document.getElementById("finished").textContent = new Date(run.finished_at_ms).toLocaleString();
  }

  function loadSoon() {
    clearTimeout(refresh);
    refresh = setTimeout(load, 150);
  }

  function take(message) {
    const event = JSON.parse(message.data);
    if (event.type === "node.delta") return delta(event);
    if (event.seq <= last) return;
    last = event.seq;
    add(event);
    node(event);
    if (event.type.startsWith("run.") || event.type.startsWith("wait.")) loadSoon();
    if (event.type === "run.finished") ended = true;
  }

  function connect() {
    const source = new EventSource(url + "/events?after=" + last);
    const types = [
      "run.started", "node.started", "node.succeeded", "region.sized", "scope.opened", "region.exited", "node.failed", "node.skipped",
      "retry.scheduled", "wait.opened", "wait.closed", "variables.patched", "run.parked", "run.cancelling", "run.finished", "node.log", "node.delta",
    ];
    for (const type of types) {
      source.addEventListener(type, (message) => {
        take(message);
        if (ended) {
          source.close();
          connection.textContent = "";
        }
      });
    }
    source.onopen = () => {
      delay = 500;
      connection.textContent = "live";
    };
    source.onerror = () => {
      connection.textContent = "connecting again";
      if (source.readyState !== EventSource.CLOSED) return; // it tries again by itself
      setTimeout(connect, delay);
      delay = Math.min(delay * 2, 8000);
    };
  }

  document.getElementById("cancel").addEventListener("click", async (event) => {
    event.target.disabled = true;
    try {
      await post(url + "/cancel", { reason: "cancelled on the run page" });
    } catch (error) {
      document.getElementById("error").replaceChildren(make("p", error.message, "notice err"));
      event.target.disabled = false;
    }
  });
  connect();
}

localTimes(document);
document.querySelectorAll("form[data-run]").forEach(runForm);
document.querySelectorAll("form[data-login]").forEach(loginForm);
document.querySelectorAll("form[data-logout]").forEach(logoutForm);
const run = document.getElementById("run");
if (run) runPage(run);
