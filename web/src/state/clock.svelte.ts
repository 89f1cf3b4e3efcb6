/** The time, once a second while somebody looks. */
class Clock {
  now = $state(Date.now());

  constructor() {
    const tick = (): void => {
      if (!document.hidden) this.now = Date.now();
    };
    setInterval(tick, 1_000);
    document.addEventListener('visibilitychange', tick);
  }
}

export const clock = new Clock();
