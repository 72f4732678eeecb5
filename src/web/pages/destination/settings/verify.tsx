import { useState } from 'preact/hooks'
import { Choice } from '../../../components/fields.tsx'
import { CopyButton } from '../../../components/text.tsx'
import { receiverExamples } from './receiver-examples.ts'

const choices = receiverExamples.map(({ language }) => [language, language] as const)

/** A receiver that verifies what is signed with this secret, to be copied. */
export function VerifySnippet({ secret }: { secret: string }) {
  const [language, setLanguage] = useState(choices[0]![0])
  const { file, run, code } = receiverExamples.find((each) => each.language === language)!
  const command = `SHARED_SECRET='${secret.replaceAll("'", `'\\''`)}' ${run}`
  return (
    <>
      <Choice label="Language" value={language} choices={choices} choose={setLanguage} />
      <p class="hint">
        Save it as <code>{file}</code>:
      </p>
      <Snippet text={code} what="receiver" />
      <p class="hint">And start it where it is:</p>
      <Snippet text={command} what="command" />
    </>
  )
}

function Snippet({ text, what }: { text: string; what: string }) {
  return (
    <div class="snippet">
      <pre tabIndex={0} role="region" aria-label={what}>
        {text}
      </pre>
      <CopyButton text={text} what={what} />
    </div>
  )
}
