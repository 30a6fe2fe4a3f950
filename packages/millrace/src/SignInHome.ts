/** The page that a browser opens once it is signed in. It is a path of this server, so a link can lead nowhere else. */
import * as Setting from "./Setting.ts"

/** `//` would begin the name of another host, and browsers read `\` as `/`. */
const PATH = /^\/(?!\/)[\x21-\x5b\x5d-\x7e]*$/u

const isPath = (text: string): text is `/${string}` => PATH.test(text)

export const kind: Setting.Kind<`/${string}`> = {
  metavar: "path",
  parse: (text) => (isPath(text) ? text : undefined),
  expected: "a path of this server, such as /account"
}

export const flags = {
  home: Setting.optional(
    "home",
    "Page of this server that a browser opens once a mailed link has signed it in; the web tool when left out, and no other page without it",
    kind
  )
}
