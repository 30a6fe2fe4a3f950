/** A chart of curves as SVG, with both axes logarithmic. */

export interface Curve {
  readonly name: string
  /** Points from left to right; both coordinates are positive. */
  readonly points: ReadonlyArray<readonly [x: number, y: number]>
}

export interface Chart {
  readonly title: string
  readonly x: string
  readonly y: string
  readonly curves: ReadonlyArray<Curve>
}

const [WIDTH, HEIGHT] = [640, 400]
const MARGIN = { left: 70, right: 150, top: 56, bottom: 50 }
/** Told apart by people who see few colours, too (Okabe and Ito). */
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000"]

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

const short = (value: number): string =>
  value >= 1e6
    ? `${Number((value / 1e6).toPrecision(3))}M`
    : value >= 1e3
      ? `${Number((value / 1e3).toPrecision(3))}k`
      : `${Number(value.toPrecision(3))}`

const text = (x: number, y: number, anchor: "start" | "middle" | "end", content: string, more = "") =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"${more}>${escaped(content)}</text>`

/** Powers of ten, and their doubles and fivefolds, from the greatest that is not above `low` to the least that is not below `high`. */
const ticksOf = (low: number, high: number): ReadonlyArray<number> => {
  const all: Array<number> = []
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    all.push(...[1, 2, 5].map((n) => n * 10 ** power))
  const first = all.findLastIndex((tick) => tick <= low)
  const last = all.findIndex((tick) => tick >= high)
  return all.slice(Math.max(0, first), last + 1)
}

export const svg = ({ curves, title, x, y }: Chart): string => {
  const points = curves.flatMap((curve) => curve.points)
  const xs = points.map(([at]) => at)
  const [left, right] = [Math.min(...xs), Math.max(...xs)]
  const ticks = ticksOf(Math.min(...points.map(([, at]) => at)), Math.max(...points.map(([, at]) => at)))
  const [bottom = 1, top = 10] = [ticks[0], ticks.at(-1)]
  const part = (value: number, from: number, to: number) => (to === from ? 0.5 : Math.log(value / from) / Math.log(to / from))
  const atX = (value: number) => MARGIN.left + part(value, left, right) * (WIDTH - MARGIN.left - MARGIN.right)
  const atY = (value: number) => HEIGHT - MARGIN.bottom - part(value, bottom, top) * (HEIGHT - MARGIN.top - MARGIN.bottom)
  const lines = ticks.map(
    (tick) =>
      `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${atY(tick).toFixed(1)}" y2="${atY(tick).toFixed(1)}" stroke="#ddd"/>` +
      text(MARGIN.left - 8, atY(tick) + 4, "end", short(tick))
  )
  const places = [...new Set(xs)].map((at) => text(atX(at), HEIGHT - MARGIN.bottom + 18, "middle", short(at)))
  // The names beside the ends of their curves, pushed apart where two would overlap
  let free = Number.NEGATIVE_INFINITY
  const ends = curves
    .map((curve, i) => ({ curve, colour: COLOURS[i % COLOURS.length], end: atY(curve.points.at(-1)?.[1] ?? bottom) }))
    .toSorted((a, b) => a.end - b.end)
  const drawn = ends.map(({ colour, curve, end }) => {
    free = Math.max(end, free + 16)
    const path = curve.points.map(([px, py]) => `${atX(px).toFixed(1)},${atY(py).toFixed(1)}`)
    const dots = curve.points.map(([px, py]) => `<circle cx="${atX(px).toFixed(1)}" cy="${atY(py).toFixed(1)}" r="3" fill="${colour}"/>`)
    const name = text(WIDTH - MARGIN.right + 10, free + 4, "start", curve.name, ` fill="${colour}"`)
    return `<polyline points="${path.join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join("")}${name}`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">
<title>${title}</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
${text(MARGIN.left, 22, "start", title, ' font-size="15"')}
${lines.join("\n")}
${places.join("\n")}
${text((MARGIN.left + WIDTH - MARGIN.right) / 2, HEIGHT - 12, "middle", x)}
${text(8, MARGIN.top - 16, "start", y, ' fill="#555"')}
${drawn.join("\n")}
</svg>
`
}
