/** Reads server-sent events from text as it arrives. `EventSource` cannot send the header with the session. */

export interface ServerEvent {
  /** The name; `message` without one. */
  name: string;
  /** The place to resume after; undefined for events without one. */
  id: string | undefined;
  data: string;
}

export class SseParser {
  #rest = '';
  #name = '';
  #id: string | undefined;
  #data: string[] = [];
  #endedWithReturn = false;

  /** Takes the next piece of the stream and returns the events that are complete. */
  push(piece: string): ServerEvent[] {
    if (this.#endedWithReturn && piece.startsWith('\n')) piece = piece.slice(1);
    if (piece !== '') this.#endedWithReturn = piece.endsWith('\r');
    const lines = (this.#rest + piece).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? '';
    return lines.flatMap((line) => this.#line(line) ?? []);
  }

  #line(line: string): ServerEvent | undefined {
    if (line === '') return this.#finish();
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.#name = value;
    else if (field === 'data') this.#data.push(value);
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    return undefined;
  }

  #finish(): ServerEvent | undefined {
    const event = { name: this.#name || 'message', id: this.#id, data: this.#data.join('\n') };
    const isEmpty = this.#data.length === 0;
    this.#name = '';
    this.#id = undefined;
    this.#data = [];
    return isEmpty ? undefined : event;
  }
}
