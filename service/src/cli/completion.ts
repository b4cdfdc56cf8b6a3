/** `touchstone completion`: a script for bash, zsh or fish that completes commands and options, made of the commands themselves. */
import { Argument, type Command } from 'commander'
import { defineCommand } from './session/command.ts'

const shells = ['bash', 'zsh', 'fish'] as const

type Word = { readonly word: string; readonly description: string }
/** The words that may follow a path of commands, such as `tag batch`; the path of the program is empty. */
type Words = ReadonlyMap<string, readonly Word[]>

/** `program` has all commands when the action runs. */
export function completionCommand(program: Command): Command {
  return defineCommand('completion', 'Prints a script that completes commands and options in a shell.', {
    notes: `bash: source <(touchstone completion bash) in ~/.bashrc. zsh: the same with zsh in ~/.zshrc, after compinit. fish: the example.`,
    examples: ['touchstone completion fish > ~/.config/fish/completions/touchstone.fish'],
  })
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .action((shell: (typeof shells)[number]) => {
      process.stdout.write(scripts[shell](wordsOf(program)))
    })
}

function wordsOf(command: Command, path: readonly string[] = [], words = new Map<string, readonly Word[]>()): Words {
  const commands = command.commands.map((child) => ({ word: child.name(), description: child.description() }))
  const options = command.options.flatMap(({ long, description, hidden }) =>
    typeof long === 'string' && !hidden ? [{ word: long, description }] : [],
  )
  words.set(path.join(' '), [...commands, ...options, { word: '--help', description: 'display help for command' }])
  for (const child of command.commands) wordsOf(child, [...path, child.name()], words)
  return words
}

const scripts: Readonly<Record<(typeof shells)[number], (words: Words) => string>> = {
  bash: (words) => `# Completion of touchstone for bash. Where no word fits, file names are completed.
_touchstone_words() {
  case "$1" in
${casesOf(words, (list) => `echo ${quoted(list.map(({ word }) => word).join(' '))}`)}
  esac
}
_touchstone() {
  local path= word next
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="\${path:+$path }$word"
    [ -n "$(_touchstone_words "$next")" ] && path=$next
  done
  COMPREPLY=($(compgen -W "$(_touchstone_words "$path")" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _touchstone touchstone
`,
  zsh: (words) => `#compdef touchstone
# Completion of touchstone for zsh. Where no word fits, file names are completed.
_touchstone_words() {
  reply=()
  case "$1" in
${casesOf(words, (list) => `reply=(${list.map(({ word, description }) => quoted(`${word}:${description}`)).join(' ')})`)}
  esac
}
_touchstone() {
  local at= word next
  local -a reply
  for word in "\${(@)words[2,CURRENT-1]}"; do
    next="\${at:+$at }$word"
    _touchstone_words "$next"
    (( \${#reply} )) && at=$next
  done
  _touchstone_words "$at"
  _describe touchstone reply || _files
}
compdef _touchstone touchstone
`,
  fish: (words) => `# Completion of touchstone for fish.
function __touchstone_at
  set -l path
  for word in (commandline -opc)[2..-1]
    contains -- (string join ' ' -- $path $word) ${[...words.keys()].map(quoted).join(' ')}
    and set -a path $word
  end
  set -l at (string join ' ' -- $path)
  test "$at" = "$argv[1]"
end
${[...words].flatMap(([path, list]) => list.map((each) => fishLine(path, each))).join('\n')}
`,
}

function casesOf(words: Words, body: (list: readonly Word[]) => string): string {
  return [...words].map(([path, list]) => `    ${quoted(path)}) ${body(list)} ;;`).join('\n')
}

function fishLine(path: string, { word, description }: Word): string {
  const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`
  return `complete -c touchstone -n '__touchstone_at "${path}"' ${what} -d ${quoted(description)}`
}

/** Writes a text as one word of a shell; none of the three expands anything in single quotes. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", '’')}'`
}
