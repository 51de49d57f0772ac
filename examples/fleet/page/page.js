// Asks for the state of the fleet twice a second and shows it; a button is one request.

const LOOK_MS = 500
const STATES = { starting: 'Starting', running: 'Running', frozen: 'Frozen', stopping: 'Stopping', ended: 'Ended' }
const $ = (id) => document.getElementById(id)
const rows = new Map() // by name of the member: elements that change

async function ask(path, method = 'GET') {
  const answer = await fetch(path, { method, cache: 'no-store' })
  if (!answer.ok) throw new Error(String(answer.status))
  return answer.json()
}

async function act(path) {
  try {
    show(await ask(path, 'POST'))
  } catch {
    $('offline').hidden = false
  }
}

function actionsOf(member) {
  if (member.state === 'ended') return ['start']
  if (member.state === 'frozen') return ['continue', 'kill']
  if (member.state !== 'running') return []
  return member.name === 'database' ? ['kill'] : ['kill', 'freeze', 'stop']
}

function rowOf(member) {
  const found = rows.get(member.name)
  if (found) return found
  const row = $('members').insertRow()
  const cell = (className) => Object.assign(row.insertCell(), { className: className ?? '' })
  const made = { name: cell(), state: cell('state'), pid: cell('number'), claims: cell(), actions: cell() }
  made.name.textContent = member.name
  if (member.claims !== null) {
    made.meter = made.claims.appendChild(document.createElement('meter'))
    made.number = made.claims.appendChild(document.createElement('span'))
  }
  rows.set(member.name, made)
  return made
}

function button(member, action) {
  const made = document.createElement('button')
  made.textContent = action[0].toUpperCase() + action.slice(1)
  made.setAttribute('aria-label', `${made.textContent} ${member.name}`)
  if (action === 'kill') made.className = 'danger'
  made.addEventListener('click', () => void act(`members/${encodeURIComponent(member.name)}/${action}`))
  return made
}

function editor(member) {
  const made = document.createElement('a')
  made.className = 'button'
  made.href = `editor/${member.name.split(' ')[1]}`
  made.target = '_blank'
  made.rel = 'noopener'
  made.textContent = 'Open'
  made.setAttribute('aria-label', `Open ${member.name}`)
  return made
}

function showMember(member, most) {
  const row = rowOf(member)
  row.state.dataset.state = member.state
  row.state.textContent = STATES[member.state] + (member.starts > 1 ? `, started ${member.starts} times` : '')
  row.pid.textContent = member.pid ?? ''
  if (row.meter) {
    Object.assign(row.meter, { min: 0, max: most, value: member.claims })
    row.number.textContent = member.claims
  }
  const wanted = actionsOf(member).join()
  if (row.shown === wanted) return
  row.shown = wanted
  const links = member.name.startsWith('server') && member.state === 'running' ? [editor(member)] : []
  row.actions.replaceChildren(...links, ...actionsOf(member).map((action) => button(member, action)))
}

function show(state) {
  $('offline').hidden = true
  for (const name of ['started', 'open', 'ended', 'wrong', 'lost']) {
    $(name).textContent = state.counts[name]
    if (name === 'wrong' || name === 'lost') $(name).toggleAttribute('data-bad', state.counts[name] > 0)
  }
  $('chaos').checked = state.chaos
  const most = Math.max(1, ...state.members.map((each) => each.claims ?? 0))
  for (const member of state.members) showMember(member, most)
  $('log').replaceChildren(
    ...state.log.map((each) => {
      const time = Object.assign(document.createElement('time'), {
        textContent: new Date(each.at_ms).toLocaleTimeString(undefined, { hour12: false }),
      })
      const line = document.createElement('li')
      line.append(time, each.text)
      return line
    }),
  )
}

$('chaos').addEventListener('change', (event) => void act(`chaos/${event.target.checked ? 'on' : 'off'}`))

async function look() {
  try {
    show(await ask('state'))
  } catch {
    $('offline').hidden = false
  }
  setTimeout(look, LOOK_MS)
}
void look()
