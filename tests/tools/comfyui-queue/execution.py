"""A queue with the name, the methods and the items of ComfyUI's."""
import heapq
import threading


class PromptQueue:
    def __init__(self):
        self.mutex = threading.RLock()
        self.not_empty = threading.Condition(self.mutex)
        self.queue, self.currently_running, self.task_counter = [], {}, 0

    def put(self, item):
        with self.mutex:
            heapq.heappush(self.queue, item)
            self.not_empty.notify()

    def get(self, timeout=None):
        with self.not_empty:
            while not self.queue:
                self.not_empty.wait(timeout)
            item, number = heapq.heappop(self.queue), self.task_counter
            self.currently_running[number] = item
            self.task_counter += 1
            return item, number

    def task_done(self, number, result, status):
        with self.mutex:
            self.currently_running.pop(number)

    def wipe_queue(self):
        with self.mutex:
            self.queue = []

    def delete_queue_item(self, wanted):
        with self.mutex:
            self.queue = [item for item in self.queue if not wanted(item)]
