/**
 * Finds the verification code in a text message: 4 to 8 digits, also written `123-456`, `123 456`, `G-123456`, or `@host #123456` (an
 * origin-bound one-time code, https://wicg.github.io/sms-one-time-codes/). A number is a code only if a word says so. Prices, times, dates,
 * phone numbers, order numbers and endings of cards are none. Pure, and linear in the length of the message.
 */
import * as Words from "./CodeWords.ts"

/** Longer messages are read to here, in UTF-16 units: ten parts of a long message. */
const LONGEST = 2_000

/** The zeros of decimal digits that compatibility normalisation leaves as they are: Arabic, Persian, Devanagari, Bengali. */
const ZEROS = [0x660, 0x6f0, 0x966, 0x9e6]

const asciiDigit = (digit: string): string => {
  const point = digit.codePointAt(0) ?? 0
  const zero = ZEROS.find((zero) => point >= zero && point < zero + 10)
  return zero === undefined ? digit : String(point - zero)
}

/** The message in lower case, with ASCII digits. */
export const normalised = (message: string): string =>
  message
    .slice(0, LONGEST)
    // A wide comma separates sentences; a narrow one also thousands
    .replaceAll("，", ", ")
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(DIRECTIONS, "")
    .replaceAll(/[٠-٩۰-۹०-९০-৯]/gu, asciiDigit)

/** Marks of direction, which are not shown. */
const DIRECTIONS = /[\u{200e}\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}]/gu

/** A place in the text: from `start` to before `end`. */
interface Span {
  readonly start: number
  readonly end: number
}

/** A number that may be a code. */
interface Candidate extends Span {
  readonly digits: string
  /** The end of the number before it; 0 if there is none. */
  readonly after: number
  /** Written as `G-123456`, which nothing else is. */
  readonly marked: boolean
}

interface Label extends Span {
  readonly kind: "code" | "other"
}

/** The code of a message; undefined if it has none. */
export const extract = (message: string): string | undefined => {
  const text = normalised(message)
  const bound = /(?:^|\s)@[a-z0-9.-]{1,253} #(?<code>\d{4,8})(?=\s|$)/u.exec(text)?.groups?.["code"]
  if (bound !== undefined) return bound
  const only = /^\s*(?<code>\d{4,8})[\s.]*$/u.exec(text)?.groups?.["code"]
  if (only !== undefined) return only
  const labels = labelsOf(text)
  const breaks = breaksOf(text)
  let best: { readonly digits: string; readonly score: number } | undefined
  let next = 0
  for (const candidate of candidatesOf(text)) {
    while ((labels[next]?.start ?? text.length) < candidate.start) next++
    const score = scoreOf(text, candidate, labels, next, breaks)
    if (score >= ENOUGH && score > (best?.score ?? 0)) best = { digits: candidate.digits, score }
  }
  return best?.digits
}

// numbers

/** Digits, also with single separators between them: `1,250.00`, `22.11.2026`, `18:45`, `800-555-0199`, `123-456`. */
const NUMBER = /\d+(?:[.,:/\-\u{2010}-\u{2013}']\d+)*/gu
const GROUPED = /^(?:\d{3}[-\u{2010}-\u{2013}]\d{2,3}|\d{4}[-\u{2010}-\u{2013}]\d{4})$/u
/** What stands directly before a number that is a part of something else: a word, a phone number, a card, a path, a query. */
const PART_BEFORE = /(?:[\p{Script=Latin}\p{Script=Cyrillic}+*#/=_\\]|\p{Script=Latin}-|\+\d{1,3} ?|[x*•]{2} ?)$/u
const PART_AFTER = /^(?:[\p{Script=Latin}\p{Script=Cyrillic}*_@]|-\p{L})/u

/** The numbers that may be codes by their form. */
function* candidatesOf(text: string): Iterable<Candidate> {
  const numbers = [...text.matchAll(NUMBER)].map(({ 0: digits, index }) => ({ digits, start: index, end: index + digits.length }))
  for (let i = 0; i < numbers.length; ) {
    // Numbers with one space between them are one: a phone number, or a code in two parts
    let last = i
    while (last + 1 < numbers.length && joins(text, numbers[last], numbers[last + 1])) last++
    const [first, end] = [numbers[i], numbers[last]]
    const after = numbers[i - 1]?.end ?? 0
    if (first !== undefined && end !== undefined) {
      const candidate = candidateOf(text, text.slice(first.start, end.end), { start: first.start, end: end.end }, after)
      if (candidate !== undefined) yield candidate
    }
    i = last + 1
  }
}

/** Fewer digits are another number, such as minutes. A zero begins a phone number. */
const JOINED = /^\d{3,}$/u
const JOINING = /^(?:\d{3,}|0\d*)$/u

const joins = (text: string, one: (Span & { digits: string }) | undefined, other: (Span & { digits: string }) | undefined): boolean =>
  one !== undefined &&
  other !== undefined &&
  other.start - one.end === 1 &&
  text[one.end] === " " &&
  JOINING.test(one.digits) &&
  JOINED.test(other.digits)

const candidateOf = (text: string, written: string, { start, end }: Span, after: number): Candidate | undefined => {
  const isCode = /^\d{4,8}$/u.test(written) || GROUPED.test(written) || /^\d{3} \d{3}$/u.test(written)
  if (!isCode) return undefined
  const before = text.slice(Math.max(0, start - 16), start)
  const following = text.slice(end, end + 16)
  const marked = /(?<![\p{L}\p{N}])g-$/u.test(before)
  if (!marked && PART_BEFORE.test(before)) return undefined
  if (PART_AFTER.test(following) || Words.CURRENCY_BEFORE.test(before) || Words.CURRENCY_AFTER.test(following)) return undefined
  return { digits: written.replaceAll(/\D/gu, ""), start, end, after, marked }
}

// words

const labelsOf = (text: string): ReadonlyArray<Label> =>
  [...text.matchAll(Words.LABELS)].flatMap(({ 0: word, groups, index }): ReadonlyArray<Label> => {
    if (groups?.["decoy"] !== undefined) return []
    return [{ kind: groups?.["code"] === undefined ? "other" : "code", start: index, end: index + word.length }]
  })

/** For each place, the cost of the ends of sentences before it. */
const breaksOf = (text: string): Uint32Array => {
  const costs = new Uint32Array(text.length + 1)
  for (let i = 0; i < text.length; i++) costs[i + 1] = (costs[i] ?? 0) + breakAt(text, i)
  return costs
}

const SENTENCE = 45
const LINE = 10

const breakAt = (text: string, place: number): number => {
  const char = text[place] ?? ""
  if ("!?。！？;".includes(char)) return SENTENCE
  if (char === "\n") return LINE
  return char === "." && /^\s|^$/u.test(text.slice(place + 1, place + 2)) ? SENTENCE : 0
}

// their distance

/** The least score of a code. The most is 100. */
const ENOUGH = 25
const MARKED = 90
const ASKED_FOR = 80
/** Subtracted from a number that another label names. */
const NAMED_OTHERWISE = 60
/** A label of another number is at most so far before it. */
const NEAR = 30
/** A word after the number says less than one before it. */
const AFTER = 5
const YEAR = /^(?:19|20)\d\d$/u

/** `next`: the index of the first label after the candidate. */
const scoreOf = (text: string, candidate: Candidate, labels: ReadonlyArray<Label>, next: number, breaks: Uint32Array): number => {
  const { after, digits, end, marked, start } = candidate
  const between = (from: number, to: number): number => (to - from) / 2 + (breaks[to] ?? 0) - (breaks[from] ?? 0)
  const ends = (from: number, to: number): boolean => (breaks[to] ?? 0) - (breaks[from] ?? 0) >= SENTENCE
  // A message may begin with the code, and name it in its second sentence
  const opens = !ends(0, start)
  const previous = labels[next - 1]
  const before = lastCode(labels, next - 1)
  const following = firstCode(labels, next, end + 120)
  const scores = [
    marked ? MARKED : 0,
    before === undefined ? 0 : 100 - between(before.end, start),
    following === undefined || (!opens && ends(end, following.start)) ? 0 : 100 - AFTER - between(end, following.start),
    Words.ENTERED.test(text.slice(Math.max(0, start - 24), start)) && Words.PURPOSES.test(text.slice(end, end + 60)) ? ASKED_FOR : 0
  ]
  const isOther = previous?.kind === "other" && previous.end >= after && start - previous.end <= NEAR && !ends(previous.end, start)
  return Math.max(...scores) - (isOther ? NAMED_OTHERWISE : 0) - (YEAR.test(digits) ? 1 : 0)
}

/** Labels looked at, so that many of them cost no more than a few. */
const FEW = 8

const lastCode = (labels: ReadonlyArray<Label>, from: number): Label | undefined => {
  for (let i = from; i >= 0 && i > from - FEW; i--) if (labels[i]?.kind === "code") return labels[i]
  return undefined
}

const firstCode = (labels: ReadonlyArray<Label>, from: number, until: number): Label | undefined => {
  for (let i = from; i < from + FEW && (labels[i]?.start ?? until) < until; i++) if (labels[i]?.kind === "code") return labels[i]
  return undefined
}
