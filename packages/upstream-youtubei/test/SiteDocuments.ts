/** The site's replies. What a field means is said where the name does not tell. */
import { TIMESTAMP } from "./SitePlayer.ts"

export const CHANNEL = "UC_x5XG1OV2P6uZZ5FSM9Ttw"
export const HANDLE = "@GoogleDevelopers"
export const TITLE = "Google for Developers"
/** A channel without any upload, and one that was closed. */
export const SILENT = "UC_silent_____________00"
export const CLOSED = "UC_closed_____________00"
export const PLAYLIST = "PLOU2XLYxmsIJyiwUPCou_OVTpRIn_8UMd"
/** The same in the newer shapes of the site. */
export const NEW_PLAYLIST = "PLnew_shapes_of_the_site"
/** The video with its comments turned off. */
export const MUTE = "video-00001"
/** The video that was watched more than others. */
export const HIT = "video-00030"

/** Videos of the channel: the site's pages of a playlist have forty here. */
export const COUNT = 60
const PAGE = 40

export const idOf = (index: number): string => `video-${String(index).padStart(5, "0")}`

const text = (simpleText: string) => ({ simpleText })
const attributed = (content: string) => ({ content })
const sources = (id: string) => [
  { url: `https://i.ytimg.com/vi/${id}/default.jpg`, width: 120, height: 90 },
  { url: `https://i.ytimg.com/vi/${id}/hqdefault.jpg`, width: 480, height: 360 }
]
const thumbnails = (id: string) => ({ thumbnails: sources(id) })
const toChannel = (id = CHANNEL) => ({ browseEndpoint: { browseId: id, canonicalBaseUrl: `/${HANDLE}` } })
const byline = (name = TITLE) => ({ runs: [{ text: name, navigationEndpoint: toChannel() }] })
const continuation = (token: string, request: string) => ({
  continuationItemRenderer: {
    trigger: "CONTINUATION_TRIGGER_ON_ITEM_SHOWN",
    continuationEndpoint: { continuationCommand: { token, request: `CONTINUATION_REQUEST_TYPE_${request}` } }
  }
})
const append = (continuationItems: ReadonlyArray<object>) => ({ appendContinuationItemsAction: { continuationItems } })

// a video: the player

/** Seconds since 1970: when the links end. */
export const EXPIRES = 1_795_615_200
export const fileOf = (itag: number) => `https://rr1---sn-test.googlevideo.com/videoplayback?expire=${EXPIRES}&itag=${itag}&n=abc`

/** A link of a client without a player, or one that the player's code must make usable. */
const linkOf = (itag: number, isLocked: boolean) =>
  isLocked
    ? { signatureCipher: `s=${encodeURIComponent("=erutangis")}&sp=sig&url=${encodeURIComponent(fileOf(itag))}` }
    : { url: fileOf(itag) }

const formats = (isLocked: boolean) => ({
  expiresInSeconds: "21540",
  formats: [
    {
      ...{ itag: 18, mimeType: 'video/mp4; codecs="avc1.42001E, mp4a.40.2"', bitrate: 503_000, width: 640, height: 360, fps: 30 },
      ...{ lastModified: "1700000000000000", contentLength: "79000000", quality: "medium", qualityLabel: "360p" },
      ...{
        approxDurationMs: "3723400",
        audioQuality: "AUDIO_QUALITY_LOW",
        audioSampleRate: "44100",
        audioChannels: 2,
        ...linkOf(18, isLocked)
      }
    }
  ],
  adaptiveFormats: [
    {
      ...{
        itag: 251,
        mimeType: 'audio/webm; codecs="opus"',
        bitrate: 130_000,
        lastModified: "1700000000000000",
        contentLength: "59000000"
      },
      ...{ quality: "tiny", approxDurationMs: "3723400", audioQuality: "AUDIO_QUALITY_MEDIUM", audioSampleRate: "48000", audioChannels: 2 },
      ...linkOf(251, isLocked)
    },
    {
      ...{ itag: 299, mimeType: 'video/mp4; codecs="avc1.64002a"', bitrate: 5_000_000, width: 1920, height: 1080, fps: 60 },
      ...{ lastModified: "1700000000000000", contentLength: "990000000", quality: "hd1080", qualityLabel: "1080p60" },
      ...{ approxDurationMs: "3723400", ...linkOf(299, isLocked) }
    }
  ]
})

const playability = (status: string, reason?: string, subreason?: string) => ({
  playabilityStatus: {
    ...{ status, playableInEmbed: true, ...(reason === undefined ? {} : { reason }) },
    ...(subreason === undefined
      ? {}
      : {
          errorScreen: {
            playerErrorMessageRenderer: { reason: text(reason ?? ""), subreason: text(subreason), thumbnail: thumbnails("x") }
          }
        })
  }
})

const details = (id: string) => ({
  videoDetails: {
    ...{ videoId: id, title: "A talk", lengthSeconds: "3723", channelId: CHANNEL, shortDescription: "A description", isCrawlable: true },
    ...{ keywords: ["web", "talk"], thumbnail: thumbnails(id), allowRatings: true, viewCount: "1234567", author: TITLE, isPrivate: false },
    ...{ isLiveContent: false, isOwnerViewing: false }
  },
  microformat: {
    playerMicroformatRenderer: {
      ...{ title: text("A talk"), description: text("A description"), thumbnail: thumbnails(id), lengthSeconds: "3723" },
      ...{ ownerProfileUrl: `http://www.youtube.com/${HANDLE}`, externalChannelId: CHANNEL, isFamilySafe: true, isUnlisted: false },
      ...{ hasYpcMetadata: false, viewCount: "1234567", category: "Science & Technology", ownerChannelName: TITLE },
      ...{ publishDate: "2026-01-01T00:00:00-08:00", uploadDate: "2026-01-01T00:00:00-08:00", availableCountries: ["US"] }
    }
  },
  captions: {
    playerCaptionsTracklistRenderer: {
      captionTracks: [
        {
          baseUrl: "https://www.youtube.com/api/timedtext?a",
          name: text("English"),
          vssId: ".en",
          languageCode: "en",
          isTranslatable: true
        },
        {
          ...{ baseUrl: "https://www.youtube.com/api/timedtext?b", name: text("English (auto-generated)"), vssId: "a.en" },
          ...{ languageCode: "en", kind: "asr", isTranslatable: true }
        }
      ],
      audioTracks: [{ captionTrackIndices: [0, 1] }],
      defaultAudioTrackIndex: 0
    }
  }
})

const live = (id: string, flags: object) => ({ videoDetails: { ...details(id).videoDetails, ...flags } })

/** What the site says of a video that it does not play, by the words of its id. */
export const REFUSALS: Readonly<Record<string, object>> = {
  "is-private": playability("LOGIN_REQUIRED", "This is a private video. Please sign in to verify that you may see it."),
  "is-members": playability(
    "UNPLAYABLE",
    "Join this channel to get access to members-only content like this video, and other exclusive perks."
  ),
  "is-aged": {
    ...playability("LOGIN_REQUIRED", "Sign in to confirm your age", "This video may be inappropriate for some users."),
    ...details("is-aged")
  },
  "is-blocked": {
    ...playability("UNPLAYABLE", "Video unavailable", "The uploader has not made this video available in your country"),
    ...details("is-blocked")
  },
  "is-live": {
    ...playability("OK"),
    ...details("is-live"),
    ...live("is-live", { isLive: true, isLiveContent: true, lengthSeconds: "0" }),
    streamingData: formats(false)
  },
  "is-upcoming": {
    ...playability("LIVE_STREAM_OFFLINE", "Premieres in 3 hours"),
    ...details("is-upcoming"),
    ...live("is-upcoming", { isUpcoming: true, isLiveContent: true, lengthSeconds: "0" })
  },
  "is-new": { ...playability("UNPLAYABLE", "We're processing this video. Check back later."), ...details("is-new") },
  "is-removed": playability("ERROR", "Video unavailable", "This video has been removed by the uploader"),
  "is-robot": playability("LOGIN_REQUIRED", "Sign in to confirm you’re not a bot"),
  "is-odd": { ...playability("UNPLAYABLE", "This video is not available on this device"), ...details("is-odd") },
  /** Played in the site's own way only, so that there are no links. */
  "no-links": {
    ...playability("OK"),
    ...details("no-links"),
    streamingData: { expiresInSeconds: "21540", formats: [], adaptiveFormats: [] }
  }
}

const missing = playability("ERROR", "Video unavailable", "This video isn't available anymore")

const isKnown = (id: string) => /^video-000[0-5]\d$/u.test(id)

/** Clients of apps get links as they are. `locked-…` is told to clients with a player only. */
export const player = (id: string, client: string): object => {
  if (REFUSALS[id] !== undefined) return REFUSALS[id]
  if (id === "locked-0001")
    return client === "TVHTML5"
      ? { ...playability("OK"), ...details(id), streamingData: formats(true) }
      : { ...playability("UNPLAYABLE", "This video is not available on this device"), ...details(id) }
  return isKnown(id) ? { ...playability("OK"), ...details(id), streamingData: formats(false) } : missing
}

/** The number that a client with a player tells the site. */
export const SIGNATURE_TIMESTAMP = TIMESTAMP

// a video: the page around it

const button = (title: string, accessibilityText: string) => ({ buttonViewModel: { title, accessibilityText, iconName: "LIKE" } })

export const watchNext = (id: string): object => ({
  contents: {
    twoColumnWatchNextResults: {
      results: {
        results: {
          contents: [
            {
              videoPrimaryInfoRenderer: {
                ...{ title: { runs: [{ text: "A talk" }] }, dateText: text("Jan 1, 2026"), relativeDateText: text("10 months ago") },
                viewCount: { videoViewCountRenderer: { viewCount: text("1,234,567 views"), shortViewCount: text("1.2M views") } },
                videoActions: {
                  menuRenderer: {
                    topLevelButtons: [
                      {
                        segmentedLikeDislikeButtonViewModel: {
                          likeButtonViewModel: {
                            likeButtonViewModel: {
                              toggleButtonViewModel: {
                                toggleButtonViewModel: {
                                  defaultButtonViewModel: button("12K", "like this video along with 12,345 other people"),
                                  toggledButtonViewModel: button("12K", "like this video along with 12,346 other people")
                                }
                              },
                              likeStatusEntityKey: "key",
                              likeStatusEntity: { key: "key", likeStatus: "INDIFFERENT" }
                            }
                          },
                          dislikeButtonViewModel: {
                            dislikeButtonViewModel: {
                              toggleButtonViewModel: {
                                toggleButtonViewModel: { defaultButtonViewModel: button("Dislike", "Dislike this video") }
                              },
                              dislikeEntityKey: "key"
                            }
                          },
                          iconType: "LIKE_ICON_TYPE_UNKNOWN",
                          likeCountEntity: { key: "key" },
                          dynamicLikeCountUpdateData: {
                            ...{
                              updateStatusKey: "key",
                              placeholderLikeCountValuesKey: "key",
                              updateDelayLoopId: "loop",
                              updateDelaySec: 5
                            }
                          }
                        }
                      }
                    ]
                  }
                }
              }
            },
            {
              itemSectionRenderer: {
                contents: [
                  { commentsEntryPointHeaderRenderer: { headerText: { runs: [{ text: "Comments" }] }, commentCount: text("3,210") } }
                ],
                sectionIdentifier: "comments-entry-point",
                targetId: "comments-entry-point"
              }
            }
          ]
        }
      },
      secondaryResults: { secondaryResults: { results: [] } }
    }
  },
  currentVideoEndpoint: { watchEndpoint: { videoId: id } }
})

// comments

const COMMENTS = 30
const COMMENTS_PAGE = 20

const thread = (index: number) => ({
  commentThreadRenderer: {
    commentViewModel: {
      commentViewModel: {
        commentId: `comment-${index}`,
        commentKey: `key-${index}`,
        commentSurfaceKey: "s",
        toolbarStateKey: "t",
        toolbarSurfaceKey: "u"
      }
    },
    isModeratedElqComment: false,
    renderingPriority: "RENDERING_PRIORITY_UNKNOWN"
  }
})

const mutation = (index: number) => ({
  entityKey: `key-${index}`,
  type: "ENTITY_MUTATION_TYPE_REPLACE",
  payload: {
    commentEntityPayload: {
      key: `key-${index}`,
      properties: { commentId: `comment-${index}`, content: attributed(`Comment ${index}`), publishedTime: "2 days ago", replyLevel: 0 },
      author: {
        channelId: "UC8butISFwT-Wl7EV0hUK0BQ",
        displayName: "@ada",
        avatarThumbnailUrl: "https://yt3.ggpht.com/ada",
        isCreator: false
      },
      toolbar: {
        likeCountNotliked: index === 0 ? "1.2K" : " ",
        likeCountLiked: "1",
        replyCount: index === 0 ? "3" : "",
        likeCountA11y: "likes"
      },
      avatar: { image: { sources: [{ url: "https://yt3.ggpht.com/ada", width: 88, height: 88 }] } }
    }
  }
})

const range = (from: number, to: number) => Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index)

const commentsHeader = {
  commentsHeaderRenderer: { titleText: { runs: [{ text: "Comments" }] }, countText: { runs: [{ text: "30" }, { text: " Comments" }] } }
}

const updates = (indices: ReadonlyArray<number>) => ({ frameworkUpdates: { entityBatchUpdate: { mutations: indices.map(mutation) } } })

const reload = (slot: string, continuationItems: ReadonlyArray<object>) => ({
  reloadContinuationItemsCommand: { targetId: "comments-section", slot: `RELOAD_CONTINUATION_SLOT_${slot}`, continuationItems }
})

/** The library makes the first token, of protocol buffers with the video's id in it; the site made the next. */
export const comments = (token: string): object | undefined => {
  if (token === "more-comments") {
    const rest = range(COMMENTS_PAGE, COMMENTS)
    return { onResponseReceivedEndpoints: [append(rest.map(thread))], ...updates(rest) }
  }
  const asked = Buffer.from(decodeURIComponent(token), "base64").toString("latin1")
  if (asked.includes(MUTE))
    return {
      onResponseReceivedEndpoints: [reload("BODY", [{ messageRenderer: { text: { runs: [{ text: "Comments are turned off. " }] } } }])]
    }
  if (!asked.includes("video-000")) return undefined
  const first = range(0, COMMENTS_PAGE)
  const body = [...first.map(thread), continuation("more-comments", "WATCH_NEXT")]
  return { onResponseReceivedEndpoints: [reload("HEADER", [commentsHeader]), reload("BODY", body)], ...updates(first) }
}

// a channel

export const resolved = (url: string): object | undefined =>
  url.toLowerCase().endsWith(HANDLE.toLowerCase()) ? { endpoint: toChannel() } : undefined

export const channel = (id: string): object | undefined => {
  if (id === CLOSED)
    return { alerts: [{ alertRenderer: { type: "ERROR", text: text("This channel does not exist.") } }], contents: twoColumns([]) }
  if (id !== CHANNEL && id !== SILENT) return undefined
  const banner = {
    imageBannerViewModel: { image: { sources: [{ url: "https://yt3.googleusercontent.com/banner", width: 2120, height: 351 }] } }
  }
  return {
    contents: twoColumns([]),
    header: {
      pageHeaderRenderer: {
        pageTitle: TITLE,
        content: {
          pageHeaderViewModel: {
            title: { dynamicTextViewModel: { text: attributed(TITLE) } },
            description: {
              descriptionPreviewViewModel: {
                description: attributed("About"),
                rendererContext: { commandContext: { onTap: { innertubeCommand: aboutPanel(id) } } }
              }
            },
            attributation: {
              attributionViewModel: {
                text: attributed("more"),
                suffix: attributed("")
              }
            },
            banner
          }
        }
      }
    },
    metadata: {
      channelMetadataRenderer: {
        ...{ title: TITLE, description: "About, shortened", externalId: id, channelUrl: `https://www.youtube.com/channel/${id}` },
        ...{ vanityChannelUrl: `http://www.youtube.com/${id === CHANNEL ? HANDLE : "@silent"}`, isFamilySafe: true, keywords: "web" },
        ...{
          avatar: { thumbnails: [{ url: "https://yt3.googleusercontent.com/avatar", width: 900, height: 900 }] },
          availableCountryCodes: ["US"]
        }
      }
    }
  }
}

/** The box about a channel is opened by a panel, which asks for its content. */
const aboutPanel = (id: string) => ({
  showEngagementPanelEndpoint: {
    engagementPanel: {
      engagementPanelSectionListRenderer: {
        targetId: "about",
        content: {
          sectionListRenderer: { contents: [{ itemSectionRenderer: { contents: [continuation(`about-${id}`, "BROWSE")] } }] }
        }
      }
    },
    identifier: { surface: "ENGAGEMENT_PANEL_SURFACE_BROWSE", tag: "about" },
    engagementPanelPresentationConfigs: { engagementPanelPopupPresentationConfig: { popupType: "PANEL_POPUP_TYPE_DIALOG" } }
  }
})

const twoColumns = (contents: ReadonlyArray<object>) => ({
  twoColumnBrowseResultsRenderer: {
    tabs: [{ tabRenderer: { title: "Home", selected: true, endpoint: toChannel(), content: { sectionListRenderer: { contents } } } }]
  }
})

export const about = (id: string): object => ({
  onResponseReceivedEndpoints: [
    append([
      {
        aboutChannelRenderer: {
          metadata: {
            aboutChannelViewModel: {
              ...{
                description: "About",
                country: "United States",
                subscriberCountText: "2.5M subscribers",
                viewCountText: "300,123,456 views"
              },
              ...{ joinedDateText: attributed("Joined Aug 23, 2007"), canonicalChannelUrl: `http://www.youtube.com/${HANDLE}` },
              ...{ channelId: id, videoCountText: "5,891 videos", links: [] }
            }
          }
        }
      }
    ])
  ]
})

// lists

/** Newest first. */
const ageOf = (index: number) =>
  index === 0 ? "23 hours ago" : index < 14 ? `${Math.max(1, index)} day${index < 2 ? "" : "s"} ago` : `${Math.floor(index / 7)} weeks ago`
const viewsOf = (index: number) => (idOf(index) === HIT ? "50K views" : "1K views")

const playlistVideo = (index: number) => ({
  playlistVideoRenderer: {
    ...{ videoId: idOf(index), thumbnail: thumbnails(idOf(index)), index: text(String(index + 1)), shortBylineText: byline() },
    title: { runs: [{ text: `Video ${index}` }], accessibility: { accessibilityData: { label: `Video ${index}` } } },
    ...{
      lengthText: text("1:02:03"),
      lengthSeconds: "3723",
      isPlayable: true,
      navigationEndpoint: { watchEndpoint: { videoId: idOf(index) } }
    },
    videoInfo: { runs: [{ text: viewsOf(index) }, { text: " • " }, { text: ageOf(index) }] },
    thumbnailOverlays: [{ thumbnailOverlayTimeStatusRenderer: { text: text("1:02:03"), style: "DEFAULT" } }]
  }
})

/** A private video: neither its owner nor its length is told. */
const hidden = {
  playlistVideoRenderer: {
    ...{ videoId: "hidden-0001", thumbnail: thumbnails("x"), index: text("99"), isPlayable: false },
    title: { runs: [{ text: "[Private video]" }], accessibility: { accessibilityData: { label: "[Private video]" } } },
    navigationEndpoint: { watchEndpoint: { videoId: "hidden-0001" } }
  }
}

const lockup = (index: number, badge = "1:02:03") => ({
  lockupViewModel: {
    ...{ contentId: idOf(index), contentType: "LOCKUP_CONTENT_TYPE_VIDEO", rendererContext: { commandContext: {} } },
    contentImage: {
      thumbnailViewModel: {
        image: { sources: sources(idOf(index)) },
        overlays: [
          {
            thumbnailOverlayBadgeViewModel: {
              thumbnailBadges: [{ thumbnailBadgeViewModel: { text: badge, badgeStyle: "THUMBNAIL_OVERLAY_BADGE_STYLE_DEFAULT" } }],
              position: "THUMBNAIL_OVERLAY_BADGE_POSITION_BOTTOM_END"
            }
          }
        ]
      }
    },
    metadata: {
      lockupMetadataViewModel: {
        title: attributed(`Video ${index}`),
        metadata: {
          contentMetadataViewModel: {
            metadataRows: [
              {
                metadataParts: [
                  {
                    text: {
                      content: TITLE,
                      commandRuns: [{ startIndex: 0, length: TITLE.length, onTap: { innertubeCommand: toChannel() } }]
                    }
                  }
                ]
              },
              { metadataParts: [{ text: attributed(viewsOf(index)) }, { text: attributed(ageOf(index)) }] }
            ],
            delimiter: " • "
          }
        }
      }
    }
  }
})

const sidebar = (title: string, count: number) => ({
  playlistSidebarRenderer: {
    items: [
      {
        playlistSidebarPrimaryInfoRenderer: {
          ...{
            stats: [{ runs: [{ text: String(count) }, { text: " videos" }] }, text("12,345 views")],
            title: { runs: [{ text: title }] }
          },
          thumbnailRenderer: { playlistVideoThumbnailRenderer: { thumbnail: thumbnails(idOf(0)) } },
          navigationEndpoint: { watchEndpoint: { videoId: idOf(0) } },
          description: text("A list")
        }
      },
      {
        playlistSidebarSecondaryInfoRenderer: {
          videoOwner: { videoOwnerRenderer: { title: byline(), thumbnail: thumbnails("x"), navigationEndpoint: toChannel() } }
        }
      }
    ]
  }
})

const metadata = (title: string) => ({ metadata: { playlistMetadataRenderer: { title, description: "A list" } } })

const isUploads = (id: string) => id === `UU${CHANNEL.slice(2)}`

export const playlist = (id: string): object | undefined => {
  if (id === NEW_PLAYLIST) return newPlaylist()
  if (id !== PLAYLIST && !isUploads(id))
    return { alerts: [{ alertRenderer: { type: "ERROR", text: text("The playlist does not exist.") } }], contents: twoColumns([]) }
  const videos = [...range(0, PAGE).map(playlistVideo), ...(isUploads(id) ? [] : [hidden]), continuation("more-videos", "BROWSE")]
  const list = { playlistVideoListRenderer: { contents: videos, playlistId: id, isEditable: false, canReorder: false } }
  return {
    contents: twoColumns([{ itemSectionRenderer: { contents: [list] } }]),
    ...metadata("Talks"),
    sidebar: sidebar("Talks", COUNT + 1)
  }
}

const newPlaylist = () => ({
  contents: twoColumns([{ itemSectionRenderer: { contents: [...range(0, 3).map((index) => lockup(index)), lockup(3, "LIVE")] } }]),
  ...metadata("New shapes"),
  header: {
    pageHeaderRenderer: {
      pageTitle: "New shapes",
      content: {
        pageHeaderViewModel: {
          title: { dynamicTextViewModel: { text: attributed("New shapes") } },
          metadata: {
            contentMetadataViewModel: {
              metadataRows: [
                {
                  metadataParts: [
                    {
                      avatarStack: {
                        avatarStackViewModel: {
                          avatars: [],
                          text: {
                            content: `by ${TITLE}`,
                            commandRuns: [{ startIndex: 0, length: TITLE.length + 3, onTap: { innertubeCommand: toChannel() } }]
                          },
                          rendererContext: { commandContext: { onTap: { innertubeCommand: toChannel() } } }
                        }
                      }
                    }
                  ]
                },
                {
                  metadataParts: [{ text: attributed("Playlist") }, { text: attributed("4 videos") }, { text: attributed("12,345 views") }]
                }
              ],
              delimiter: " • "
            }
          }
        }
      }
    }
  }
})

const searchVideo = (index: number) => ({
  videoRenderer: {
    ...{ videoId: idOf(index), thumbnail: thumbnails(idOf(index)), title: { runs: [{ text: `Video ${index}` }] }, ownerText: byline() },
    ...{ publishedTimeText: text(ageOf(index)), lengthText: text("1:02:03"), viewCountText: text("1,234,567 views") },
    ...{ shortViewCountText: text("1.2M views"), navigationEndpoint: { watchEndpoint: { videoId: idOf(index) } }, showActionMenu: false },
    detailedMetadataSnippets: [
      {
        snippetText: { runs: [{ text: "A " }, { text: "talk", bold: true }] },
        snippetHoverText: { runs: [{ text: "From the description" }] }
      }
    ]
  }
})

export const NOTHING = "zzzzqqqq"

export const search = (query: string): object => {
  const none = [
    {
      backgroundPromoRenderer: {
        title: text("No results found"),
        bodyText: text("Try different keywords"),
        icon: { iconType: "EMPTY_SEARCH" }
      }
    }
  ]
  const contents = query === NOTHING ? none : range(0, 20).map(searchVideo)
  const more = query === NOTHING ? [] : [continuation("more-results", "SEARCH")]
  return {
    estimatedResults: query === NOTHING ? "0" : "1000000",
    contents: {
      twoColumnSearchResultsRenderer: {
        primaryContents: { sectionListRenderer: { contents: [{ itemSectionRenderer: { contents } }, ...more] } }
      }
    }
  }
}

/** Pages after the first. */
export const continued = (token: string): object | undefined => {
  if (token === "more-videos") return { onResponseReceivedActions: [append(range(PAGE, COUNT).map(playlistVideo))] }
  if (token === "more-results")
    return { onResponseReceivedCommands: [append([{ itemSectionRenderer: { contents: range(20, 30).map(searchVideo) } }])] }
  return token.startsWith("about-") ? about(token.slice("about-".length)) : undefined
}
