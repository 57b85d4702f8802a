// The time, as state: one tick a second for everything on the page that shows an age.

class Clock {
  now = $state(Date.now());

  /** Ticks until the returned function is called. */
  run(): () => void {
    const timer = setInterval(() => {
      if (!document.hidden) {
        this.now = Date.now();
      }
    }, 1_000);
    return () => clearInterval(timer);
  }
}

export const clock = new Clock();
