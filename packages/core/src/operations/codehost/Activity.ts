/**
 * The public events of a user of a platform that hosts code, in the form of GitHub's events API
 * (https://docs.github.com/rest/using-the-rest-api/github-event-types). A field that a payload lacks is null.
 */
import { Effect, Schema } from "effect"

/** Fields that not every server sends. */
const Text = Schema.NullOr(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null)))
const Count = Schema.NullOr(Schema.Int).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null)))
const Commits = Schema.NullOr(Schema.Array(Schema.Struct({ sha: Schema.String, message: Schema.String }))).pipe(
  Schema.withDecodingDefaultKey(Effect.succeed(null))
)

const Issue = Schema.Struct({ number: Schema.Int, title: Text, state: Text, html_url: Text })
const Comment = Schema.Struct({ id: Schema.Int, body: Text, html_url: Text })

const PAYLOADS = {
  CommitCommentEvent: { comment: Schema.Struct({ ...Comment.fields, commit_id: Text }) },
  CreateEvent: { ref: Text, ref_type: Schema.String, description: Text },
  DeleteEvent: { ref: Schema.String, ref_type: Schema.String },
  ForkEvent: { forkee: Schema.Struct({ full_name: Schema.String, html_url: Text }) },
  GollumEvent: { pages: Schema.Array(Schema.Struct({ page_name: Schema.String, title: Text, action: Schema.String, html_url: Text })) },
  IssueCommentEvent: { action: Schema.String, issue: Issue, comment: Comment },
  IssuesEvent: { action: Schema.String, issue: Issue },
  MemberEvent: { action: Schema.String, member: Schema.Struct({ login: Schema.String }) },
  PublicEvent: {},
  PullRequestEvent: { action: Schema.String, number: Schema.Int, pull_request: Issue },
  PullRequestReviewCommentEvent: { action: Schema.String, pull_request: Issue, comment: Comment },
  PullRequestReviewEvent: {
    action: Schema.String,
    pull_request: Issue,
    review: Schema.Struct({ id: Schema.Int, state: Schema.String, body: Text, html_url: Text })
  },
  PushEvent: {
    ref: Schema.String,
    head: Schema.String,
    before: Schema.String,
    /** Commits of the push; null where the platform does not count them. */
    size: Count,
    commits: Commits
  },
  ReleaseEvent: {
    action: Schema.String,
    release: Schema.Struct({ tag_name: Schema.String, name: Text, prerelease: Schema.Boolean, html_url: Text })
  },
  WatchEvent: { action: Schema.String }
} as const

export type KnownType = keyof typeof PAYLOADS

const base = {
  id: Schema.String,
  actor: Schema.Struct({ login: Schema.String, avatar_url: Text }),
  repo: Schema.Struct({ id: Schema.Int, name: Schema.String }),
  /** Events in private repositories are never returned. */
  public: Schema.Literal(true),
  created_at: Schema.NullOr(Schema.String)
}

const event = <const Type extends KnownType>(type: Type) =>
  Schema.Struct({ type: Schema.Literal(type), ...base, payload: Schema.Struct(PAYLOADS[type]) })

/** An event of any other type. Its payload is as the platform sent it. */
const Other = Schema.Struct({
  // Else a known event with a payload of another form would be one of these
  type: Schema.String.check(Schema.makeFilter((type) => !Object.hasOwn(PAYLOADS, type), { expected: "a type of event that is not known" })),
  ...base,
  payload: Schema.JsonObject
})

export const Event = Schema.Union([
  event("CommitCommentEvent"),
  event("CreateEvent"),
  event("DeleteEvent"),
  event("ForkEvent"),
  event("GollumEvent"),
  event("IssueCommentEvent"),
  event("IssuesEvent"),
  event("MemberEvent"),
  event("PublicEvent"),
  event("PullRequestEvent"),
  event("PullRequestReviewCommentEvent"),
  event("PullRequestReviewEvent"),
  event("PushEvent"),
  event("ReleaseEvent"),
  event("WatchEvent"),
  Other
])
export type Event = typeof Event.Type
