
const page = new PageData(JSON.parse(document.getElementById("data").textContent));
const list = document.createElement("ul");
for (const job of page.table("jobs")) {
  const item = document.createElement("li");
  item.textContent = job.name;
  list.append(item);
}
document.getElementById("page").append(list);
