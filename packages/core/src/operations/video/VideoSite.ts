/** The port of a platform that shows videos. */
import { Context, Effect, Layer } from "effect"
import type * as Operation from "../../work/Operation.ts"
import {
  type DownloadUnavailable,
  type InvalidInput,
  type NotFound,
  UpstreamNotConfigured,
  type UpstreamUnavailable
} from "../../work/OperationError.ts"
import type * as Records from "./Records.ts"

export interface Page {
  readonly page_token: string | undefined
  readonly per_page: number
}

export interface Search extends Page {
  readonly q: string
  readonly order: "relevance" | "date" | "rating" | "views"
}

type Failure = NotFound | UpstreamUnavailable | UpstreamNotConfigured
/** `InvalidInput` with the field `page_token` if the platform does not know the token. */
type Paged<A> = Effect.Effect<Operation.Read<A>, Failure | InvalidInput>

/** A page of a channel's videos. `ages`: milliseconds since a video was published, at least, where `published_at` is null. */
export type Uploads = Records.ChannelVideos & { readonly ages?: ReadonlyMap<string, number> }

/** A channel is given by its id, or by its handle with or without `@`. */
export class VideoSite extends Context.Service<
  VideoSite,
  {
    /** Fails without a provider. */
    readonly configured: Effect.Effect<void, UpstreamNotConfigured>
    readonly video: (id: string) => Effect.Effect<Operation.Read<Records.VideoDetails>, Failure>
    readonly channel: (channel: string) => Effect.Effect<Operation.Read<Records.Channel>, Failure>
    readonly channelVideos: (channel: string, page: Page) => Paged<Uploads>
    readonly search: (search: Search) => Paged<Records.VideoSearch>
    readonly playlist: (id: string, page: Page) => Paged<Records.Playlist>
    /** `NotFound` if the video has its comments turned off, too. */
    readonly comments: (id: string, page: Page & { readonly order: "relevance" | "time" }) => Paged<Records.Comments>
    /** Fails without a provider of downloads. */
    readonly downloads: Effect.Effect<void, UpstreamNotConfigured>
    readonly download: (id: string) => Effect.Effect<Operation.Read<Records.Download>, Failure | DownloadUnavailable>
  }
>()("@millrace/core/operations/Video/VideoSite") {
  /** Of a provider that gives no links to files. */
  static readonly withoutDownloads = {
    downloads: Effect.fail(new UpstreamNotConfigured({ upstream: "video downloads" })),
    download: () => Effect.fail(new UpstreamNotConfigured({ upstream: "video downloads" }))
  }

  static readonly unconfigured: Layer.Layer<VideoSite> = Layer.sync(VideoSite, () => {
    const missing = Effect.fail(new UpstreamNotConfigured({ upstream: "video" }))
    return {
      configured: missing,
      ...{ video: () => missing, channel: () => missing, channelVideos: () => missing },
      ...{ search: () => missing, playlist: () => missing, comments: () => missing },
      ...VideoSite.withoutDownloads
    }
  })
}
