/** What to set where an upstream has no provider, in the names of the environment. */

const NEEDS: Readonly<Record<string, string>> = {
  "code hosting": "MILLRACE_CODE_HOST other than off",
  images: "MILLRACE_IMAGES",
  inbox: "MILLRACE_MAIL_DOMAIN",
  "map search": "MILLRACE_MAP_SEARCH",
  payments: "MILLRACE_PAYMENTS",
  plans: "MILLRACE_PLANS",
  "price alerts": "MILLRACE_MAIL_RELAY, and MILLRACE_PUBLIC_URL for the links in its mails",
  proxy: "MILLRACE_PROXY or MILLRACE_SOCKS at some host",
  speech: "MILLRACE_SPEECH",
  "verification codes": "MILLRACE_SMS_NUMBERS",
  video: "MILLRACE_VIDEO, and MILLRACE_YOUTUBE_KEY for youtube",
  "video downloads": "MILLRACE_VIDEO=youtubei"
}

/** An operation without its provider. */
export interface Missing {
  readonly key: string
  readonly upstream: string
}

/** One clause for each upstream: which operations need it, and what to set. */
export const sentence = (missing: ReadonlyArray<Missing>): string =>
  [...Map.groupBy(missing, ({ upstream }) => upstream)]
    .map(([upstream, operations]) => `${operations.map(({ key }) => key).join(", ")}: ${NEEDS[upstream] ?? upstream}`)
    .join("; ")
