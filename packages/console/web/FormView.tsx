/** The controls of a form. */
import type { Field, Texts } from "./Form.ts"

interface FormProps {
  readonly fields: ReadonlyArray<Field>
  readonly texts: Texts
  readonly wrong: Readonly<Record<string, string>>
  readonly onChange: (name: string, text: string) => void
}

export const FormView = ({ fields, onChange, texts, wrong }: FormProps) => (
  <>
    {fields.map((field) => (
      <FieldView
        key={field.name}
        field={field}
        text={texts[field.name] ?? ""}
        wrong={wrong[field.name]}
        onChange={(text) => onChange(field.name, text)}
      />
    ))}
  </>
)

interface FieldProps {
  readonly field: Field
  readonly text: string
  readonly wrong: string | undefined
  readonly onChange: (text: string) => void
}

const FieldView = ({ field, onChange, text, wrong }: FieldProps) => {
  const { hint, name, required } = field
  const id = `field-${name}`
  return (
    <div class="field">
      <label for={id}>
        <code>{name}</code>
        {required ? null : <span class="optional">optional</span>}
      </label>
      <ControlOf field={field} text={text} wrong={wrong} onChange={onChange} />
      {hint === "" ? null : (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {wrong === undefined ? null : (
        <p class="wrong" id={`${id}-wrong`}>
          {wrong}
        </p>
      )}
    </div>
  )
}

const ControlOf = ({ field: { choices, control, hint, name, required, schema }, onChange, text, wrong }: FieldProps) => {
  const id = `field-${name}`
  const described = [hint === "" ? "" : `${id}-hint`, wrong === undefined ? "" : `${id}-wrong`].filter((part) => part !== "").join(" ")
  const shared = {
    id,
    name,
    "aria-required": required,
    "aria-invalid": wrong !== undefined,
    ...(described === "" ? {} : { "aria-describedby": described })
  }
  if (control === "choice" || control === "truth")
    return (
      <select {...shared} value={text} onChange={(event) => onChange(event.currentTarget.value)}>
        {required && text !== "" ? null : <option value="">{required ? "Choose" : "—"}</option>}
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    )
  if (control === "long" || control === "lines" || control === "json")
    return (
      <textarea
        {...shared}
        rows={control === "long" ? 3 : 4}
        maxLength={control === "long" ? schema.maxLength : undefined}
        spellcheck={control === "long"}
        class={control === "long" ? "" : "is-code"}
        value={text}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    )
  return (
    <input
      {...shared}
      type="text"
      inputMode={control === "number" ? "decimal" : "text"}
      autocomplete="off"
      spellcheck={false}
      value={text}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  )
}
