/** Whether a list has something else in a place that was taken before. What is added or removed at its end moves nothing. */
export function moves(before: readonly string[], now: readonly string[]): boolean {
  return now.some((key, place) => before[place] !== undefined && before[place] !== key);
}
