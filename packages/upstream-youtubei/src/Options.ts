/** The options of the provider. Apart from the rest, so that no published type needs those of youtubei.js. */
import type { ReadLimits } from "@millrace/upstreams/public-reader"

/** Clients of the site that get links, by the names that youtubei.js has for them. */
export type Client = "ANDROID" | "ANDROID_VR" | "IOS" | "MWEB" | "TV" | "TV_SIMPLY" | "VISIONOS" | "WEB" | "WEB_EMBEDDED"

export interface Options extends ReadLimits {
  /** `https://www.youtube.com` by default. */
  readonly baseUrl?: URL
  /** The site's clients that are asked for downloads, in this order: `ANDROID_VR`, then `TV`. */
  readonly downloadClients?: ReadonlyArray<Client>
}
