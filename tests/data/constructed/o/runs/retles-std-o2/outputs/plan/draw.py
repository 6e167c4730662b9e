import matplotlib; matplotlib.use("Agg")
import matplotlib.pyplot as plt
st = ["fundus.png", "letterbox\n128", "RetBox", "sigmoid\n+ cut", "NMS\nper class", "drop disc", "to pixels\n+ clip", "json"]
fig, ax = plt.subplots(figsize=(9, 1.4), dpi=60); ax.axis("off"); ax.set_xlim(-.6, 7.6); ax.set_ylim(-1, 1)
for i, s in enumerate(st):
    ax.text(i, 0, s, ha="center", va="center", fontsize=8, bbox=dict(boxstyle="round", fc="w"))
    if i: ax.annotate("", (i - .4, 0), (i - .6, 0), arrowprops=dict(arrowstyle="->"))
fig.savefig("plan.png")
