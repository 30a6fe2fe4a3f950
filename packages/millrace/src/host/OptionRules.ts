/** What each option of `operation`, `job` and `createMillrace` must be. The types say the same to callers in TypeScript. */
import * as OperatorKey from "../OperatorKey.ts"
import * as Given from "./Given.ts"
import { CLUSTER, MAIL, PROXY, SMS } from "./Incoming.ts"
import { PAYMENTS } from "./PaymentOptions.ts"
import { SIGN_IN } from "./SignInOptions.ts"

const credits = Given.rule("a number of credits, at least 0, with at most three decimals", (value) => typeof value === "number")
const seconds = Given.rule("seconds, a number above 0", (value) => Given.isNumber(0)(value) && value !== 0)
const count = Given.rule("a whole number of at least 1", Given.isInt(1))

/** A web page's origin: scheme, host and port, as browsers send it. */
const isOrigin = (value: unknown): boolean => {
  if (value === "*") return true
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined
  return url !== undefined && (url.origin === value || `${url.protocol}//${url.host}` === value)
}

const PROVIDERS: Given.Rules = {
  speech: Given.text('"espeak", or "openai:URL"'),
  speechKey: Given.text("the key as text"),
  images: Given.text('"openai:URL", "automatic1111:URL" or "comfyui:URL#CHECKPOINT"'),
  imagesKey: Given.text("the key as text"),
  translate: Given.text("the address of a LibreTranslate server"),
  translateKey: Given.text("the key as text"),
  codeHost: Given.text('"off", or the address of GitHub\'s API'),
  codeHostToken: Given.text("the token as text"),
  mapSearch: Given.text('"places" or "osm:URL"'),
  mapSearchKey: Given.text("the key as text"),
  mapSearchContact: Given.text("an e-mail address or a page"),
  overpass: Given.text("the address of an Overpass server"),
  video: Given.text('"youtube" or "youtubei"'),
  youtubeKey: Given.text("the key as text"),
  youtubeUrl: Given.text("the address of the API, or of the site"),
  youtubeQuota: count,
  binFile: Given.text("the path of a CSV file"),
  dnsServers: Given.texts('an array such as ["9.9.9.9"]')
}

const WEBHOOKS: Given.Rules = {
  deliver: Given.flag,
  allowPrivate: Given.flag,
  timeLimit: Given.duration,
  pauses: Given.durations,
  keepDeadLetters: Given.duration,
  deadLetterLimit: count,
  disableAfter: Given.duration,
  concurrency: count,
  waitingLimit: count,
  drain: Given.duration,
  ttl: Given.duration,
  poll: Given.duration
}

const API: Given.Rules = {
  title: Given.text("a text"),
  version: Given.text("a text"),
  description: Given.text("a text, in Markdown"),
  contact: Given.within("api.contact", { name: Given.text("a text"), url: Given.text("a URL"), email: Given.text("an address") }),
  license: Given.within("api.license", {
    name: Given.text("a text"),
    identifier: Given.text("an SPDX identifier"),
    url: Given.text("a URL")
  }),
  servers: Given.rule('an array such as [{ url: "https://api.example.com" }]', Array.isArray)
}

const LEVELS = ["debug", "info", "warn", "error"]
const isLog = (value: unknown): boolean =>
  (Given.isRecord(value) || typeof value === "function") &&
  LEVELS.every((level) => ["undefined", "function"].includes(typeof (value as Readonly<Record<string, unknown>>)[level]))

const millis = Given.rule("milliseconds, a number above 0", (value) => Given.isNumber(0)(value) && value !== 0)

const DESCRIBED: Given.Rules = {
  summary: Given.anything,
  description: Given.text("a text, in Markdown"),
  price: Given.anything,
  unit: Given.text('a word, such as "page"'),
  quantity: Given.rule("a function of the input", (value) => typeof value === "function"),
  route: Given.within("the route", {
    method: Given.anything,
    path: Given.anything,
    params: Given.anything,
    query: Given.anything,
    body: Given.anything
  }),
  run: Given.anything,
  timeout: millis,
  secret: Given.texts('an array of names of fields, such as ["password"]')
}

/** The options of `operation`. */
export const CALL: Given.Rules = { ...DESCRIBED, success: Given.anything }

/** The options of `job`. */
export const JOB: Given.Rules = {
  ...DESCRIBED,
  result: Given.anything,
  checkpoint: Given.anything,
  files: Given.texts('an array of media types, such as ["application/pdf"]'),
  attempts: count,
  deadline: millis,
  retention: millis,
  limits: Given.within("limits", { atOnce: count, atOnceOfAccount: count, ofAccount: count })
}

/** The root, or segments of plain letters that are none of the API. */
const isToolPath = (value: unknown): boolean =>
  typeof value === "string" && /^\/(?:(?!(?:api|docs|health|ready|hooks|sign-in)(?:\/|$))[\w-]+(?:\/[\w-]+)*)?$/u.test(value)

/** The options of `createMillrace`, in the order of the documentation. */
export const OPTIONS: Given.Rules = {
  store: Given.anything,
  masterKey: Given.textOrLayer("32 bytes as 64 hexadecimal digits"),
  blobs: Given.textOrLayer('a folder, or "s3:https://HOST/BUCKET"'),
  state: Given.textOrLayer('"postgres://…", or "sqlite:PATH"'),
  operations: Given.anything,
  standard: Given.anything,
  providers: Given.within("providers", PROVIDERS),
  services: Given.anything,
  money: Given.within("money", { credit: Given.anything, credits: Given.anything, value: Given.anything }),
  api: Given.within("api", API),
  corsOrigins: Given.rule('an array such as ["https://app.example.com"]', (value) => Array.isArray(value) && value.every(isOrigin)),
  rateLimit: Given.within("rateLimit", { limit: count, window: seconds }),
  signUpCredits: credits,
  trial: Given.flag,
  cluster: CLUSTER,
  late: Given.oneOf("withhold", "charge"),
  breaker: Given.within("breaker", {
    failures: count,
    openFor: Given.rule("milliseconds, a number of at least 0", Given.isNumber(0))
  }),
  jobs: Given.rule("a whole number of at least 0", Given.isInt(0)),
  jobLease: seconds,
  jobDocuments: Given.oneOf("state", "events"),
  jobRetention: Given.rule("hours, a number above 0", (value) => Given.isNumber(0)(value) && value !== 0),
  webhooks: Given.within("webhooks", WEBHOOKS),
  mail: MAIL,
  sms: SMS,
  payments: PAYMENTS,
  coupons: Given.within("coupons", { acceptAfter: Given.rule("a whole number of at least 0", Given.isInt(0)) }),
  signIn: SIGN_IN,
  proxy: PROXY,
  webTool: Given.rule('a path below the API\'s host, such as "/console"', isToolPath),
  operatorKey: { give: OperatorKey.EXPECTED, holds: (value) => typeof value === "string" && OperatorKey.isKey(value), secret: true },
  grace: Given.rule("seconds, a number of at least 0", Given.isNumber(0)),
  erasures: Given.text("the path of a file"),
  log: Given.rule("an object with functions debug, info, warn and error, or some of them, such as console", isLog)
}
