// What the pages do better with JavaScript: times in the reader's zone, tables that refresh themselves
// without disturbing the reader, and output as it comes. Every page works without it.
(() => {
  'use strict';
  const root = document.documentElement;
  root.classList.add('js');

  // Times. The page holds UTC; the title keeps it.
  const two = { hour: '2-digit', minute: '2-digit' };
  function localTime(at, now) {
    const exact = at.getSeconds() ? { ...two, second: '2-digit' } : two;
    if (at.toDateString() === now.toDateString()) {
      return at.toLocaleTimeString(undefined, { ...two, second: '2-digit' });
    }
    const year = at.getFullYear() === now.getFullYear() ? {} : { year: 'numeric' };
    return at.toLocaleString(undefined, { day: 'numeric', month: 'short', ...year, ...exact });
  }
  function showLocalTimes(within) {
    const now = new Date();
    for (const t of within.querySelectorAll('time[data-local]')) {
      const at = new Date(t.dateTime);
      if (!Number.isNaN(at.getTime())) t.textContent = localTime(at, now);
    }
  }

  // Refreshing. A refresh is left out while nobody looks, while text in it is selected, or while a
  // question in it is being answered.
  const live = document.getElementById('live');
  const offline = document.getElementById('offline');
  const stale = document.getElementById('stale');
  let opened = [];
  function busy() {
    const sel = document.getSelection();
    return document.hidden || live.querySelector('details.confirm[open]') ||
      (sel && !sel.isCollapsed && live.contains(sel.anchorNode));
  }
  if (live) {
    live.addEventListener('htmx:beforeRequest', (e) => { if (busy()) e.preventDefault(); });
    live.addEventListener('htmx:beforeSwap', (e) => {
      // A question may have been opened while the answer was on its way.
      if (busy()) { e.detail.shouldSwap = false; return; }
      opened = [...live.querySelectorAll('details[open][id]')].map((d) => d.id);
    });
    live.addEventListener('htmx:afterSwap', () => {
      for (const id of opened) document.getElementById(id)?.setAttribute('open', '');
      showLocalTimes(live);
      reloadOutput();
    });
    for (const name of ['htmx:sendError', 'htmx:timeout', 'htmx:responseError']) {
      live.addEventListener(name, (e) => {
        if (e.detail.xhr?.status === 404) location.reload(); // deleted in the meantime
        offline.hidden = false;
      });
    }
    live.addEventListener('htmx:afterOnLoad', (e) => {
      if (e.detail.successful !== false) offline.hidden = true;
      stale.hidden = e.detail.xhr?.getResponseHeader('Dts-Stale') !== 'true';
    });
    document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); });
  }
  function refresh() { if (live) window.htmx.trigger(live, 'refresh'); }

  // A question goes away with Escape, or with a click beside it.
  function closeQuestions(except) {
    for (const d of document.querySelectorAll('details.confirm[open]')) if (d !== except) d.open = false;
  }
  document.addEventListener('click', (e) => closeQuestions(e.target.closest('details.confirm')));
  document.addEventListener('keydown', (e) => {
    if (e.key !== 'Escape') return;
    const open = document.querySelector('details.confirm[open]');
    closeQuestions(null);
    if (open?.contains(document.activeElement)) open.querySelector('summary').focus();
  });

  // Output. The pane is loaded again when the refreshed part of the page says that it is about another
  // attempt, or that its attempt has ended.
  const outputLimit = 256 * 1024; // characters kept in the pane
  let source = null;
  function reloadOutput() {
    const state = document.getElementById('state');
    const pane = document.getElementById('output');
    if (!state || !pane || !state.dataset.output || state.dataset.output === pane.dataset.output) return;
    window.htmx.ajax('GET', live.getAttribute('hx-get'), { source: pane, target: pane, select: '#output', swap: 'outerHTML' })
      .then(follow);
  }
  function follow() {
    source?.close();
    source = null;
    const pre = document.querySelector('#output pre[data-follow]');
    if (!pre) return;
    const mark = document.getElementById('following');
    pre.scrollTop = pre.scrollHeight; // what comes is at the end
    source = new EventSource(pre.dataset.follow);
    source.addEventListener('open', () => { mark.hidden = false; });
    source.addEventListener('error', () => { mark.hidden = true; }); // the browser tries again by itself
    source.addEventListener('output', (e) => {
      const chunk = JSON.parse(e.data);
      const atEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 40;
      if (chunk.offset === 0) pre.textContent = '';
      if (chunk.dropped) pre.append(`\n… ${chunk.dropped} bytes not kept …\n`);
      pre.append(chunk.text);
      if (pre.textContent.length > 2 * outputLimit) pre.textContent = pre.textContent.slice(-outputLimit);
      if (atEnd) pre.scrollTop = pre.scrollHeight;
    });
    source.addEventListener('end', () => {
      source.close();
      mark.hidden = true;
      refresh();
    });
  }

  // The form: the reader's own zone, and all the others to choose from.
  const zone = document.getElementById('zone');
  if (zone) {
    if (zone.hasAttribute('data-guess') && !zone.value) {
      zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || '';
    }
    const list = document.getElementById('zones');
    for (const name of Intl.supportedValuesOf?.('timeZone') ?? []) list.append(new Option(name));
  }
  document.getElementById('errors')?.focus();

  showLocalTimes(document);
  follow();
})();
