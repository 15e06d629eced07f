// The search runs in a worker, and browsers refuse workers to a page opened from disk. Such a page gets a stand-in with
// the same interface: a hidden frame that runs the worker's script and hands messages over. The theme asks for it by
// the name IFrameWorker.
(() => {
  if (location.protocol !== "file:") return;

  const load = (document, source) =>
    new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = source;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`cannot load ${source}`));
      document.body.append(script);
    });

  class IFrameWorker extends EventTarget {
    constructor(source) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      // Opening the document keeps the frame's first window, on which the functions below are set.
      inner.document.open();
      inner.document.write("<!doctype html><body></body>");
      inner.document.close();
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = (...sources) =>
        sources.reduce((before, next) => before.then(() => load(inner.document, next)), Promise.resolve());
      this.ready = load(inner.document, String(source));
    }

    postMessage(data) {
      const inner = this.frame.contentWindow;
      this.ready.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.IFrameWorker = window.Worker = IFrameWorker;
})();
