/** Amounts, times and counts as people read them. */

const CREDITS = new Intl.NumberFormat("en", { maximumFractionDigits: 3 })
const DATE = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" })
const DATE_AND_YEAR = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" })
const TIME = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })
const MINUTE = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" })

/** An amount of credits without its unit: at most three decimals. */
export const amount = (credits: number): string => CREDITS.format(credits)

export const credits = (count: number): string => `${amount(count)} ${count === 1 ? "credit" : "credits"}`

/** `1 call`, `2 calls`. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${CREDITS.format(count)} ${count === 1 ? one : many}`

export const day = (iso: string): string => DATE.format(new Date(iso))
export const dayOfYear = (iso: string): string => DATE_AND_YEAR.format(new Date(iso))
export const time = (iso: string): string => TIME.format(new Date(iso))
export const minute = (iso: string): string => MINUTE.format(new Date(iso))

/** A length of time in milliseconds: `84 ms`, `1.2 s`, `3 min 5 s`. */
export const lasting = (milliseconds: number): string => {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`
  const seconds = Math.round(milliseconds / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

const DAY = 86_400_000

/** How far away a time is: `in 12 days`, `in 3 hours`, `5 minutes ago`. */
export const away = (iso: string, now: number): string => {
  const distance = Date.parse(iso) - now
  const size = Math.abs(distance)
  const [count, unit] =
    size >= DAY
      ? [size / DAY, "day"]
      : size >= 3_600_000
        ? [size / 3_600_000, "hour"]
        : size >= 60_000
          ? [size / 60_000, "minute"]
          : [0, ""]
  if (unit === "") return distance < 0 ? "just now" : "in a moment"
  const text = counted(Math.floor(count as number), unit as string)
  return distance < 0 ? `${text} ago` : `in ${text}`
}

/** A file's size in bytes: `812 bytes`, `14.2 kB`. */
export const size = (bytes: number): string =>
  bytes < 1_000 ? counted(bytes, "byte") : bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`

/** An amount in units of a currency: `$10.00`. */
export const money = (value: number, currency: string): string => new Intl.NumberFormat("en", { style: "currency", currency }).format(value)

const BROWSERS = [
  [/Edg\//u, "Edge"],
  [/Firefox\//u, "Firefox"],
  [/Chrome\//u, "Chrome"],
  [/Safari\//u, "Safari"]
] as const
const SYSTEMS = [
  [/Android/u, "Android"],
  [/iPhone|iPad/u, "iOS"],
  [/Windows/u, "Windows"],
  [/Mac OS X/u, "macOS"],
  [/Linux/u, "Linux"]
] as const

/** A browser by its `User-Agent`, as people call it: `Firefox on Linux`. The text itself where it is not known. */
export const browserName = (agent: string): string => {
  const [browser, system] = [BROWSERS, SYSTEMS].map((known) => known.find(([mark]) => mark.test(agent))?.[1])
  if (browser === undefined) return agent
  return system === undefined ? browser : `${browser} on ${system}`
}
