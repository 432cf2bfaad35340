// What the theme's search does not do by itself.
{
  // Words to leave out: the search would also find every longer word that begins with one of them.
  const COMMON = new Set(
    ("a an and are as at be by can do does for from how i if in is it me my of on or our so that " +
      "the this to we what when where which why with you your").split(" "),
  );
  const QUERY = 2; // the type of a message with what the reader has typed

  const meant = (message) => {
    if (message?.type !== QUERY) return message;
    const words = message.data.trim().split(/\s+/);
    // the last word may not be complete yet
    const kept = words.filter((word, i) => i === words.length - 1 || !COMMON.has(word.toLowerCase()));
    return { ...message, data: kept.join(" ") };
  };

  // In pages that are opened as files, browsers refuse web workers: the same script runs in a hidden
  // frame instead.
  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      this.ready = new Promise((resolve) => script.addEventListener("load", resolve));
      inside.document.body.append(script);
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  const Original = location.protocol === "file:" ? FrameWorker : Worker;
  window.Worker = class extends Original {
    postMessage(message, ...more) {
      super.postMessage(meant(message), ...more);
    }
  };
}
