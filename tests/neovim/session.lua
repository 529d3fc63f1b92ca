-- A session of a user in Neovim, with the configuration of docs/editors.md: opens files, waits for findings, hovers, applies
-- a code action. It calls what the keys of a user call (vim.lsp.buf.*), so that Neovim itself shows and applies what the
-- server answers. Reads the steps from the file $SESSION_STEPS and writes what each saw to $SESSION_RESULT, both as JSON.
local TIMEOUT = 20000

local function read_json(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return vim.json.decode(text)
end

local function write_json(path, value)
  local file = assert(io.open(path, "w"))
  file:write(vim.json.encode(value))
  file:close()
end

local function wait_for(what, condition)
  if not vim.wait(TIMEOUT, condition, 20) then
    error("timeout: " .. what)
  end
end

local function wait_for_client()
  local client
  wait_for("a server for the buffer", function()
    client = vim.lsp.get_clients and vim.lsp.get_clients({ bufnr = 0 })[1]
      or vim.tbl_values(vim.lsp.buf_get_clients(0))[1]
    return client and client.initialized
  end)
  return client
end

local function find_floats()
  local found = {}
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= "" then
      table.insert(found, window)
    end
  end
  return found
end

-- Colors of the pictures. Each style is one group, or a group with another one over it.
local COLORS = {
  Identifier = "guifg=#0d5f66",
  Special = "guifg=#6b7280",
  String = "guifg=#7a4b00",
  Number = "guifg=#7a3e9d",
  Comment = "guifg=#5f6b76",
  Statement = "guifg=#0d5f67",
  NonText = "guifg=#c0c4c8",
  DiagnosticError = "guifg=#b3261e",
  DiagnosticWarn = "guifg=#8a5a00",
  DiagnosticInfo = "guifg=#2456a6",
  LspCodeLens = "guifg=#5f6b77",
  FloatBorder = "guifg=#8c959d",
  DiagnosticUnderlineError = "gui=underline guisp=#b3261e",
}
local STYLES = {
  { "Identifier" }, { "Special" }, { "String" }, { "Number" }, { "Comment" }, { "Statement" }, { "NonText" },
  { "DiagnosticError" }, { "DiagnosticWarn" }, { "DiagnosticInfo" }, { "LspCodeLens" }, { "FloatBorder" },
  { "Identifier", "DiagnosticUnderlineError" }, { "DiagnosticUnderlineError" },
}

local function set_colors()
  vim.o.termguicolors = true
  vim.cmd("highlight clear NormalFloat")
  for group, color in pairs(COLORS) do
    vim.cmd("highlight clear " .. group)
    vim.cmd("highlight " .. group .. " " .. color)
  end
end

-- Returns the name of a style by the number that screenattr() has for it: shows each style on a page, and asks.
local function find_styles()
  vim.cmd("tabnew")
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { string.rep("x", #STYLES) })
  local space = vim.api.nvim_create_namespace("styles")
  for number, groups in ipairs(STYLES) do
    for priority, group in ipairs(groups) do
      local mark = { end_col = number, hl_group = group, priority = 100 + priority }
      vim.api.nvim_buf_set_extmark(0, space, 0, number - 1, mark)
    end
  end
  vim.cmd("redraw")
  local found = {}
  for number, groups in ipairs(STYLES) do
    found[vim.fn.screenattr(1, number)] = table.concat(groups, " ")
  end
  vim.cmd("bdelete!")
  return found
end

-- Returns the windows over the text. Without a terminal, Neovim does not draw them.
local function read_floats()
  local found = {}
  for _, window in ipairs(find_floats()) do
    local row, column = unpack(vim.api.nvim_win_get_position(window))
    local height = vim.api.nvim_win_get_height(window)
    table.insert(found, {
      row = row,
      column = column,
      width = vim.api.nvim_win_get_width(window),
      lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, height, false),
    })
  end
  return found
end

-- Returns the rows of the screen, each as a list of texts with their styles, and the windows over them.
local function read_screen()
  local styles = find_styles()
  vim.cmd("redraw")
  local rows = {}
  for row = 1, vim.o.lines do
    local runs = {}
    for column = 1, vim.o.columns do
      local style = styles[vim.fn.screenattr(row, column)] or ""
      local cell = vim.fn.screenstring(row, column)
      local last = runs[#runs]
      if last and last[2] == style then
        last[1] = last[1] .. cell
      else
        table.insert(runs, { cell, style })
      end
    end
    table.insert(rows, runs)
  end
  return { rows = rows, floats = read_floats() }
end

local steps = {}

function steps.open(step, settings, state)
  vim.cmd("edit " .. vim.fn.fnameescape(settings.root .. "/" .. step.file))
  state.client = wait_for_client()
  return { name = vim.api.nvim_buf_get_name(0), client = state.client.name, root = state.client.config.root_dir }
end

local function name_rules(found)
  local rules = {}
  for _, each in ipairs(found) do
    each.code = each.code or (each.user_data and each.user_data.lsp and each.user_data.lsp.code)
    table.insert(rules, tostring(each.code))
  end
  table.sort(rules)
  return table.concat(rules, " ")
end

-- Waits until the findings of the buffer, or of a file that is not open, are those of the named rules.
function steps.findings(step, settings)
  local buffer, lines = vim.api.nvim_get_current_buf(), nil
  if step.file then
    local path = settings.root .. "/" .. step.file
    buffer, lines = vim.fn.bufadd(path), vim.fn.readfile(path)
  end
  local found = {}
  vim.wait(TIMEOUT, function()
    found = vim.diagnostic.get(buffer)
    return name_rules(found) == table.concat(step.rules, " ")
  end, 20)
  lines = lines or vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local shown = {}
  for _, each in ipairs(found) do
    local text = (lines[each.lnum + 1] or ""):sub(each.col + 1, each.end_col)
    table.insert(shown, { rule = each.code, message = each.message, line = each.lnum + 1, text = text })
  end
  return shown
end

-- Puts the cursor on the first place of a text.
function steps.cursor(step)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local start = line:find(step.text, 1, true)
    if start then
      vim.api.nvim_win_set_cursor(0, { number, start - 1 })
      return { number, start }
    end
  end
  error("not in the buffer: " .. step.text)
end

function steps.hover()
  vim.lsp.buf.hover()
  wait_for("a window with documentation", function()
    return #find_floats() > 0
  end)
  local window = find_floats()[1]
  return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false)
end

function steps.close_floats()
  for _, window in ipairs(find_floats()) do
    vim.api.nvim_win_close(window, true)
  end
  return #find_floats()
end

-- Applies the first code action whose title contains the text. Returns all titles.
function steps.code_action(step)
  local titles = {}
  local before = vim.api.nvim_buf_get_changedtick(0)
  vim.ui.select = function(items, options, choose)
    local chosen
    for number, item in ipairs(items) do
      local title = options.format_item(item)
      table.insert(titles, title)
      if not chosen and title:find(step.title, 1, true) then
        chosen = number
      end
    end
    choose(chosen and items[chosen], chosen)
  end
  vim.lsp.buf.code_action()
  vim.wait(step.timeout or TIMEOUT, function()
    return vim.api.nvim_buf_get_changedtick(0) ~= before
  end, 20)
  return titles
end

function steps.definition(step)
  local from = vim.api.nvim_buf_get_name(0)
  local line = vim.api.nvim_win_get_cursor(0)[1]
  vim.lsp.buf.definition()
  wait_for("the definition", function()
    return vim.api.nvim_buf_get_name(0) ~= from or vim.api.nvim_win_get_cursor(0)[1] ~= line
  end)
  return { vim.api.nvim_buf_get_name(0), vim.api.nvim_win_get_cursor(0)[1], vim.api.nvim_get_current_line() }
end

-- Adds a line, and asks for completions at its end.
function steps.complete(step)
  vim.api.nvim_buf_set_lines(0, step.line, step.line, false, { step.text })
  local params = vim.lsp.util.make_position_params()
  params.position = { line = step.line, character = #step.text }
  local answers = vim.lsp.buf_request_sync(0, "textDocument/completion", params, TIMEOUT)
  local labels = {}
  for _, answer in pairs(answers or {}) do
    for _, item in ipairs(answer.result and (answer.result.items or answer.result) or {}) do
      table.insert(labels, item.label)
    end
  end
  return { labels, vim.bo.omnifunc }
end

-- Shows the lenses, and runs the first one of a line.
function steps.lens(step)
  vim.cmd("JobgenLenses")
  local lens
  wait_for("a lens", function()
    lens = vim.lsp.codelens.get(0)[1]
    return lens ~= nil
  end)
  vim.api.nvim_win_set_cursor(0, { lens.range.start.line + 1, 0 })
  local seen = steps.rendered({ run = function()
    vim.ui.select = function(options, _, choose)
      choose(options[1])
    end
    vim.lsp.codelens.run()
  end })
  return { lens.command.title, seen[1] }
end

-- Runs a command that opens a window, and closes the window.
function steps.rendered(step)
  local before = vim.api.nvim_get_current_win()
  if step.run then
    step.run()
  else
    vim.cmd(step.command)
  end
  wait_for("a window with the manifest", function()
    return vim.api.nvim_get_current_win() ~= before
  end)
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  local seen = { text, vim.bo.filetype, vim.bo.modifiable }
  vim.cmd("close")
  return seen
end

function steps.undo()
  vim.cmd("silent! undo")
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

function steps.type(step)
  vim.cmd("silent! %substitute/" .. step.from .. "/" .. step.to .. "/")
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

function steps.buffer()
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

function steps.screen()
  return read_screen()
end

local function stop(client)
  vim.lsp.stop_client(client.id)
  vim.wait(5000, function()
    return client:is_stopped()
  end, 20)
end

local function run()
  local settings = read_json(vim.env.SESSION_STEPS)
  vim.o.swapfile = false
  vim.o.columns = 110
  vim.o.lines = 26
  vim.o.showtabline = 0
  set_colors()
  dofile(settings.config)
  local state, results = {}, {}
  for _, step in ipairs(settings.steps) do
    -- Each step can be undone by itself.
    vim.cmd("let &undolevels = &undolevels")
    local ok, value = pcall(steps[step.step], step, settings, state)
    table.insert(results, { step = step.step, ok = ok, value = value })
    if not ok then
      break
    end
  end
  write_json(vim.env.SESSION_RESULT, results)
  if state.client then
    stop(state.client)
  end
end

local ok, problem = xpcall(run, debug.traceback)
if not ok then
  io.stderr:write(tostring(problem) .. "\n")
end
vim.cmd(ok and "qall!" or "cquit!")
