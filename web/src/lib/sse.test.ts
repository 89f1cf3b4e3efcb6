import { describe, expect, it } from 'vitest';
import { SseParser } from './sse';

const stream = 'id: 7\nevent: event\ndata: {"a":\ndata: 1}\n\n: alive\n\nevent: live\ndata: x\n\n';
const events = [
  { name: 'event', id: '7', data: '{"a":\n1}' },
  { name: 'live', id: undefined, data: 'x' },
];

describe('the parser of server-sent events', () => {
  it('reads names, ids and data of several lines, and skips comments', () => {
    expect(new SseParser().push(stream)).toEqual(events);
  });

  it('reads the same however the stream is cut and lines end', () => {
    for (const ending of ['\n', '\r\n', '\r']) {
      const text = stream.replaceAll('\n', ending);
      for (let cut = 0; cut <= text.length; cut++) {
        const parser = new SseParser();
        const read = [...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut)), ...parser.push('\n')];
        expect(read, `${JSON.stringify(ending)} cut at ${cut}`).toEqual(events);
      }
    }
  });

  it('gives no event for what is not complete', () => {
    expect(new SseParser().push('data: half')).toEqual([]);
    expect(new SseParser().push('id: 1\n\n')).toEqual([]);
  });

  it('does not carry an id over to the next event, which may be a live one', () => {
    const parser = new SseParser();
    parser.push('id: 1\ndata: a\n\n');
    expect(parser.push('data: b\n\n')).toEqual([{ name: 'message', id: undefined, data: 'b' }]);
  });
});
