/** The numbers on the axis of a plot. */

/** Ticks at round numbers from 0 to at least `largest`: 1, 2 or 5 times a power of ten apart, about four of them. */
export const ticksTo = (largest: number, about = 4): ReadonlyArray<number> => {
  if (largest <= 0) return [0, 1]
  const rough = largest / about
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough * (1 - 1e-9)) ?? 10)
  const count = Math.ceil((largest / step) * (1 - 1e-9))
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)))
}
