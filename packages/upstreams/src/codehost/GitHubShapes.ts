/** The replies of GitHub's REST API (https://docs.github.com/rest), as far as they are used. Servers of other versions may lack fields. */
import { CodeHost } from "@millrace/core"
import { Effect, Schema } from "effect"

const Text = Schema.NullOr(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null)))
const Count = Schema.NullOr(Schema.Int).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null)))
const No = Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false)))

const Owner = Schema.Struct({ login: Schema.String, type: Text, avatar_url: Text, html_url: Text })

export const User = Schema.Struct({
  ...CodeHost.User.fields,
  ...{ name: Text, bio: Text, company: Text, location: Text, blog: Text, email: Text, twitter_username: Text, avatar_url: Text }
})

/** Who may see it decides `visibility`, where a server has it: an internal one is not private to GitHub, but not public either. */
const seen = { private: Schema.Boolean, visibility: Text }

export const Repository = Schema.Struct({
  ...CodeHost.Repository.fields,
  ...seen,
  owner: Owner,
  ...{ clone_url: Text, description: Text, homepage: Text, language: Text, created_at: Text, updated_at: Text, pushed_at: Text },
  topics: Schema.Array(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  license: Schema.NullOr(Schema.Struct({ spdx_id: Text })).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
  archived: No
})

export const RepositoryDetail = Schema.Struct({
  ...Repository.fields,
  subscribers_count: Count,
  parent: Schema.NullOr(Schema.Struct({ ...seen, full_name: Schema.String, html_url: Schema.String })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(null))
  )
})

export const RepositorySearch = Schema.Struct({
  total_count: Schema.Int,
  incomplete_results: Schema.Boolean,
  items: Schema.Array(Repository)
})

export const Events = Schema.Array(CodeHost.Activity.Event)
