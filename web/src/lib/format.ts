/** Times, money and names for people. */

import type { CostReport, UsageReport } from './types';

/** The end of an id, as the terminal shows it. */
export function shortId(id: string): string {
  return id.replaceAll('-', '').slice(-8);
}

/** The last part of a path. */
export function baseName(path: string | null | undefined): string {
  return path?.replace(/\/+$/, '').split('/').at(-1) ?? '';
}

/** A duration in its two largest units. */
export function duration(seconds: number): string {
  if (seconds > 0 && seconds < 0.05) return '< 0.1 s';
  if (seconds > 0 && seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min${whole % 60 && minutes < 10 ? ` ${whole % 60} s` : ''}`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h${minutes % 60 ? ` ${minutes % 60} min` : ''}`;
  const days = Math.floor(hours / 24);
  return `${days} d${hours % 24 ? ` ${hours % 24} h` : ''}`;
}

/** What is left of a time, so that nobody reads it as a time of day. */
export function countdown(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  if (whole < 60) return `${whole} s`;
  return whole < 3_600 ? `${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ''}` : duration(whole);
}

export function ago(at: string, now: number): string {
  const seconds = (now - Date.parse(at)) / 1000;
  return seconds < 5 ? 'now' : `${largest(seconds)} ago`;
}

function largest(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

export function clock(at: string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? '' : time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
}

export function dateTime(at: string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? '' : time.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}

export function dollars(amount: number): string {
  const digits = amount !== 0 && Math.abs(amount) < 0.01 ? 4 : 2;
  return `$${amount.toFixed(digits)}`;
}

/** What was spent. `~` marks an estimate and `+` a sum to which something unknown has to be added, as in `towline cost`. */
export function cost(usage: Pick<UsageReport, 'cost_usd' | 'estimated' | 'partial'>): string {
  if (usage.cost_usd === null || usage.cost_usd === undefined) return 'unknown';
  return `${usage.estimated ? '~' : ''}${dollars(usage.cost_usd)}${usage.partial ? '+' : ''}`;
}

/** What was spent in a time. Where nothing ran, nothing was spent. */
export function spent({ lines, total }: Pick<CostReport, 'lines' | 'total'>): string {
  return lines.length === 0 ? dollars(0) : cost(total);
}

export function count(n: number): string {
  if (n < 10_000) return String(n);
  return n < 999_500 ? `${(n / 1e3).toFixed(n < 100_000 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`;
}

export function tokens(usage: UsageReport): string {
  const parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
  const known = parts.filter((part): part is number => typeof part === 'number');
  return known.length === 0 ? 'unknown' : count(known.reduce((a, b) => a + b, 0));
}

export function bytes(n: number): string {
  if (n < 10_000) return `${n} characters`;
  return n < 1e6 ? `${Math.round(n / 1e3)} kB` : `${(n / 1e6).toFixed(1)} MB`;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}

/** A name of the API in words: `rate_limited` is `rate limited`. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}

const AXES: Readonly<Record<string, string>> = { usd: 'money', wall: 'time', errors: 'errors in a row', denials: 'denials in a row' };

/** What a budget limits. */
export function axisName(axis: string): string {
  return AXES[axis] ?? words(axis);
}

/** The first letter as a capital. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
