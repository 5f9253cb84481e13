"use strict";
// Pages are readable without this script. It adds local times, copies lines, and refreshes pages.
(() => {
  const enliven = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (!Number.isNaN(moment.getTime())) time.title = `${moment.toLocaleString()} here, ${time.title}`;
    }
    for (const button of root.querySelectorAll("[data-copy]")) {
      button.hidden = !navigator.clipboard;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.previousElementSibling.textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
    }
    for (const select of root.querySelectorAll("form.filters select")) {
      select.addEventListener("change", () => select.form.requestSubmit());
    }
  };

  // Requests the page again and replaces the part that changes. Does nothing while the part has the focus. Open details stay
  // open.
  const refresh = async (part) => {
    const isBusy = () => part.contains(document.activeElement) && document.activeElement !== document.body;
    if (isBusy()) return;
    const reply = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!reply.ok) return;
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const fresh = page.getElementById(part.id);
    if (!fresh || !part.isConnected || isBusy() || fresh.innerHTML === part.dataset.shown) return;
    part.dataset.shown = fresh.innerHTML;
    const open = [...part.querySelectorAll("details")].map((one) => one.open);
    part.replaceChildren(...document.importNode(fresh, true).childNodes);
    part.querySelectorAll("details").forEach((one, at) => { one.open = open[at] ?? one.open; });
    enliven(part);
  };

  enliven(document);
  for (const part of document.querySelectorAll("[data-seconds]")) {
    // A slow page is requested less often, so that an open page does not load the gateway.
    const again = async (wait) => {
      await new Promise((go) => setTimeout(go, wait));
      const began = performance.now();
      if (!document.hidden) await refresh(part).catch(() => {});
      again(Math.max(1000 * Number(part.dataset.seconds), 20 * (performance.now() - began)));
    };
    again(1000 * Number(part.dataset.seconds));
  }
  for (const part of document.querySelectorAll("[data-events]")) {
    let waiting = 0;
    const events = new EventSource(part.dataset.events);
    events.onmessage = () => {
      if (waiting) return;
      waiting = setTimeout(() => { waiting = 0; refresh(part).catch(() => {}); }, 200);
    };
    addEventListener("pagehide", () => events.close());
  }
})();
