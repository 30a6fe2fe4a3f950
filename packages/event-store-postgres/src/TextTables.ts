/** The tables of text indexes. They hold nothing but what is derived from the log. */
import type { Tables } from "./Migrations.ts"

export const TEXTS: Tables = {
  name: "texts",
  migrations: [
    (schema) => `
CREATE TABLE ${schema}.text_indexes(
  name text COLLATE "C" NOT NULL, version integer NOT NULL, position text COLLATE "C" NOT NULL, PRIMARY KEY (name, version));
-- \`words\` holds the words of the text, and each key as a lexeme that begins with a colon.
CREATE TABLE ${schema}.text_documents(
  name text COLLATE "C" NOT NULL, version integer NOT NULL, id text COLLATE "C" NOT NULL, text text NOT NULL, keys text[] NOT NULL,
  weight double precision NOT NULL, value text NOT NULL, words tsvector NOT NULL, PRIMARY KEY (name, version, id));
CREATE INDEX text_documents_by_words ON ${schema}.text_documents USING gin(words)`
  ]
}
