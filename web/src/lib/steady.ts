/** How long a thing must have been in its place before a click on it counts. */
export const STEADY_AFTER = 700;

/**
 * Whether something has been on the screen, in one place, for long enough to be what a person aims at. What has just appeared under a
 * pointer, or moved there, gets the second click of a double click that was meant for what was there before.
 */
export class Steady {
  #place: string | undefined;
  #since = Infinity;

  /** Takes what is shown now and where, and returns whether it may be clicked. */
  look(place: string, now: number): boolean {
    if (place !== this.#place) {
      this.#place = place;
      this.#since = now;
    }
    return now - this.#since >= STEADY_AFTER;
  }
}

interface Placed {
  offsetTop: number;
  offsetLeft: number;
  offsetParent: Element | null;
}

/** Where an element is in the document. Scrolling changes nothing: who scrolls knows what moves. */
export function placeIn(element: Placed): string {
  let [top, left] = [0, 0];
  for (let at: Placed | null = element; at !== null; at = at.offsetParent as Placed | null) {
    top += at.offsetTop;
    left += at.offsetLeft;
  }
  return `${left}:${top}`;
}
